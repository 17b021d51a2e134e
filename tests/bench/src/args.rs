//! What was asked for.

use crate::{Fallible, parts};
use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) const HELP: &str = "\
usage: tests/bench/run [OPTIONS]

Measures weir beside the programs that it replaces, and against its targets.

  --quick        fewer rounds of smaller runs: under two minutes
  --only PARTS   some parts: size,memory,startup,discard,capture,chatty,endtoend,latency,
                 scaling,throughput
  --add          keep what earlier runs have found out about the other parts
  --weir BIN     measure this weir [the small one for this machine]
  --scratch DIR  keep logs there; a file system on a disk [below --out]
  --out DIR      leave results.json, results.md and plots there [target/bench]
  --strict       exit status 1 where a target falls short
";

/// How one call is meant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// To measure.
    Measure(Args),
    /// To be what is measured, or a part of it.
    Job(Vec<OsString>),
    /// To say what can be asked for.
    Help,
}

/// The options of a measurement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Args {
    pub(crate) quick: bool,
    pub(crate) strict: bool,
    pub(crate) add: bool,
    /// No names: every part.
    pub(crate) only: Vec<String>,
    pub(crate) weir: PathBuf,
    pub(crate) out: PathBuf,
    pub(crate) scratch: Option<PathBuf>,
}

impl Args {
    /// Whether this part is to be run.
    pub(crate) fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == part)
    }
}

pub(crate) fn parse(words: impl Iterator<Item = OsString>) -> Fallible<Asked> {
    let words: Vec<OsString> = words.collect();
    if words.first().is_some_and(|word| word == "job") {
        return Ok(Asked::Job(words.into_iter().skip(1).collect()));
    }
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let mut args = Args {
        quick: false,
        strict: false,
        add: false,
        only: Vec::new(),
        weir: PathBuf::from("target/static").join(arch).join("weir"),
        out: PathBuf::from("target/bench"),
        scratch: None,
    };
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(word) = parser.next()? {
        match word {
            lexopt::Arg::Long("quick") => args.quick = true,
            lexopt::Arg::Long("strict") => args.strict = true,
            lexopt::Arg::Long("add") => args.add = true,
            lexopt::Arg::Long("only") => args.only.extend(part_names(parser.value()?)?),
            lexopt::Arg::Long("weir") => args.weir = parser.value()?.into(),
            lexopt::Arg::Long("out") => args.out = parser.value()?.into(),
            lexopt::Arg::Long("scratch") => args.scratch = Some(parser.value()?.into()),
            lexopt::Arg::Long("help") | lexopt::Arg::Short('h') => return Ok(Asked::Help),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(Asked::Measure(args))
}

fn part_names(list: OsString) -> Fallible<Vec<String>> {
    let list = list.into_string().map_err(|_| "--only: not UTF-8")?;
    let names: Vec<String> = list.split(',').map(str::to_owned).collect();
    for name in &names {
        if !parts::PARTS.iter().any(|(known, _)| known == name) {
            return Err(format!("--only: there is no part {name:?}").into());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &[&str]) -> Result<Asked, String> {
        parse(words.iter().map(OsString::from)).map_err(|why| why.to_string())
    }

    fn args(words: &[&str]) -> Args {
        match asked(words) {
            Ok(Asked::Measure(args)) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_words_every_part_is_measured() {
        let args = args(&[]);
        assert!(!args.quick && !args.strict && !args.add);
        assert!(parts::PARTS.iter().all(|(name, _)| args.wants(name)));
    }

    #[test]
    fn only_names_parts_and_can_be_given_again() {
        let args = args(&["--only", "size,memory", "--quick", "--only=latency"]);
        assert!(args.quick && args.wants("size") && args.wants("memory") && args.wants("latency"));
        assert!(!args.wants("chatty"));
    }

    #[test]
    fn a_part_that_is_not_there_is_refused() {
        assert_eq!(asked(&["--only", "sise"]), Err("--only: there is no part \"sise\"".to_owned()));
    }

    #[test]
    fn a_job_takes_every_word_as_it_is() {
        let words = ["--quick", "x"].map(OsString::from).to_vec();
        assert_eq!(asked(&["job", "--quick", "x"]), Ok(Asked::Job(words)));
    }

    #[test]
    fn help_names_every_part() {
        assert!(parts::PARTS.iter().all(|(name, _)| HELP.contains(name)));
    }
}
