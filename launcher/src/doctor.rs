//! The report of `weir doctor`.

use crate::cli::{Examination, Form};
use crate::ending::Leave;
use crate::plan::Plan;
use crate::refusal::{Refusal, printable};
use crate::run::{self, Findings, Verdict};
use crate::voice::{Voice, quoted};
use std::fmt::Write as _;

/// Examines a directory and reports on standard output: leaves with 0 where a run would
/// start, with 1 where it would be refused.
#[cold]
#[inline(never)]
pub(crate) fn report(examination: &Examination, voice: &mut Voice) -> Result<Leave, Refusal> {
    let plan = Plan::of_examination(examination)?;
    let findings = run::examine(&plan)?;
    let report = match examination.form {
        Form::Table => table(&findings),
        Form::Json => json(&findings),
    };
    Ok(match (voice.print(&report), findings.would_start()) {
        (Leave::Code(0), false) => Leave::Code(1),
        (leave, _) => leave,
    })
}

/// A verdict in one word, and what there is to say about it.
fn told(verdict: &Verdict) -> (&'static str, String) {
    match verdict {
        Verdict::Fine(detail) => ("ok", detail.clone()),
        Verdict::Warning(detail) => ("warning", detail.clone()),
        Verdict::Refused(refusal) => ("refused", refusal.message()),
    }
}

fn table(findings: &Findings) -> String {
    let mut text = String::new();
    // Writing into a string cannot fail.
    for finding in findings.iter() {
        let (verdict, detail) = told(&finding.verdict);
        let detail = printable(&detail);
        let _ = writeln!(text, "{:17}  {verdict:7}  {detail}", finding.check);
    }
    let outcome = if findings.would_start() { "would start" } else { "would be refused" };
    let _ = writeln!(text, "A run {outcome}.");
    text
}

fn json(findings: &Findings) -> String {
    let mut text = format!("{{\"wouldStart\":{},\"checks\":[", findings.would_start());
    // Writing into a string cannot fail.
    for (at, finding) in findings.iter().enumerate() {
        let (verdict, detail) = told(&finding.verdict);
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(text, "{comma}{{\"check\":\"{}\",\"verdict\":\"{verdict}\"", finding.check);
        if let Verdict::Refused(refusal) = &finding.verdict {
            let _ = write!(text, ",\"code\":\"{}\"", refusal.code().as_str());
        }
        let _ = write!(text, ",\"detail\":{}}}", quoted(&detail));
    }
    text.push_str("]}\n");
    text
}
