//! What bytes are records, said again: the text from left to right, key by key, without
//! a JSON parser. It shares nothing with what it judges; tests/fuzz has it too.

use super::oracle::{is_artifact_id, is_caller_id, number};

/// What of a record has not been read yet.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn literal(&mut self, text: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    fn key(&mut self, key: &str) -> Option<()> {
        self.literal(&format!(",\"{key}\":"))
    }

    fn number(&mut self, key: &str) -> Option<u64> {
        self.key(key)?;
        let end = self.0.find(|char| !"0123456789".contains(char))?;
        let (digits, rest) = self.0.split_at(end);
        self.0 = rest;
        let is_canonical = digits == "0" || !(digits.is_empty() || digits.starts_with('0'));
        u64::try_from(number(digits)).ok().filter(|_| is_canonical)
    }

    fn truth(&mut self, key: &str) -> Option<bool> {
        self.key(key)?;
        match self.literal("true") {
            Some(()) => Some(true),
            None => self.literal("false").map(|()| false),
        }
    }

    fn text(&mut self, key: &str) -> Option<&'a str> {
        self.key(key)?;
        let (text, rest) = self.0.strip_prefix('"')?.split_once('"')?;
        self.0 = rest;
        Some(text)
    }

    /// Null, or what `read` finds.
    fn or_null<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&mut Self, &str) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.literal(&format!(",\"{key}\":null")) {
            Some(()) => Some(None),
            None => read(self, key).map(Some),
        }
    }

    fn ids(&mut self) -> Option<()> {
        let ids = [self.text("runId")?, self.text("attemptId")?];
        let artifact = self.text("logArtifactId")?;
        (ids.into_iter().all(is_caller_id) && is_artifact_id(artifact)).then_some(())
    }

    fn end(mut self) -> Option<()> {
        self.literal("}")?;
        self.0.is_empty().then_some(())
    }
}

/// Whether these bytes are a fact, of either version.
pub(crate) fn is_fact(bytes: &[u8]) -> bool {
    bytes.len() <= 1024 && std::str::from_utf8(bytes).ok().and_then(read_fact).is_some()
}

fn read_fact(text: &str) -> Option<()> {
    let first = text.strip_prefix("{\"schemaVersion\":1");
    let is_first = first.is_some();
    let mut rest = Rest(first.or_else(|| text.strip_prefix("{\"schemaVersion\":2"))?);
    rest.ids()?;
    let quota = rest.number("maximumBytes")?;
    let reached = rest.truth("quotaReached")?;
    rest.number("observedAtMs")?;
    if !(64 * 1024..=1024 * 1024 * 1024).contains(&quota) {
        return None;
    }
    if !is_first {
        let end = u128::from(rest.number("startBytes")?) + u128::from(rest.number("keptBytes")?);
        let dropped = rest.number("droppedBytes")?;
        // A log never outgrows its quota; what was dropped makes `true`, in a full log only.
        let holds = end <= u128::from(quota) && (dropped > 0) == reached;
        if !holds || reached && end < u128::from(quota) {
            return None;
        }
    }
    rest.end()
}

/// Whether these bytes are a receipt of version 2, where these are the errnos.
pub(crate) fn is_receipt(bytes: &[u8], is_errno: fn(&str) -> bool) -> bool {
    let text = std::str::from_utf8(bytes).ok().filter(|_| bytes.len() <= 2048);
    text.and_then(|text| read_receipt(text, is_errno)).is_some()
}

fn read_receipt(text: &str, is_errno: fn(&str) -> bool) -> Option<()> {
    let mut rest = Rest(text);
    rest.literal("{\"schemaVersion\":2")?;
    rest.ids()?;
    if rest.number("startedAtMs")? > rest.number("finishedAtMs")? {
        return None;
    }
    let code = rest.or_null("exitCode", Rest::number)?;
    let signal = rest.or_null("signal", Rest::number)?;
    let core_dumped = rest.truth("coreDumped")?;
    let start_error = rest.or_null("startError", Rest::text)?;
    let capture = rest.text("capture")?;
    for key in ["startBytes", "keptBytes", "droppedBytes"] {
        rest.number(key)?;
    }
    let capture_error = rest.or_null("captureError", Rest::text)?;
    for key in ["userMs", "systemMs", "maxRssBytes"] {
        rest.number(key)?;
    }
    // One end, and only one; only a signal leaves a core.
    let ends = [code.is_some(), signal.is_some(), start_error.is_some()];
    let holds = ends.into_iter().filter(|end| *end).count() == 1
        && code.is_none_or(|code| code <= 255)
        && signal.is_none_or(|signal| (1..=64).contains(&signal))
        && (signal.is_some() || !core_dumped)
        && start_error.into_iter().chain(capture_error).all(is_errno)
        && (["complete", "truncated"].contains(&capture) && capture_error.is_none()
            || capture == "failed");
    if holds { rest.end() } else { None }
}
