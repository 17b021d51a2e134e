//! Help texts, one screen each.

use super::doctor::HEEDED;
use super::options::{OPTIONS, Spec};
use super::ql3::VARIABLES;
use std::fmt::Write;

pub(super) fn version() -> String {
    format!("weir {}\n", env!("CARGO_PKG_VERSION"))
}

pub(super) fn overview() -> String {
    String::from(
        "weir runs one job, keeps its output inside an exact byte quota, and leaves\n\
         proof of whether anything was cut.\n\
         \n\
         Usage:\n\
         \x20 weir run [OPTIONS] [--] COMMAND [ARG]...   run a job (weir run --help)\n\
         \x20 weir doctor DIR | --root DIR               can it keep the promises there?\n\
         \x20 weir ql3 argv COMMAND [ARG]... | shell     the QingLong 3 launcher protocol\n\
         \x20 weir --help | --version\n\
         \n\
         Example:\n\
         \x20 weir run --log build.log --quota 1M -- make\n\
         \x20 cat .build.log.truncated.json\n\
         \n\
         The second file is the fact: quotaReached is true when the quota cut\n\
         something, false when the log is proven to hold every byte. Without the file\n\
         nothing is known.\n",
    )
}

pub(super) fn run() -> String {
    let mut text = String::from(
        "Usage: weir run [OPTIONS] [--] COMMAND [ARG]...\n\
         \n\
         Runs a job whose output goes to a log of bounded size, with a fact beside it\n\
         that says whether anything was cut. --log or --root is needed.\n\
         \n",
    );
    for spec in &OPTIONS {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "  {:21} {}", left_column(spec), spec.help);
    }
    text.push_str(
        "\n\
         SIZE is a number of bytes, or 64K, 64KiB, 66kB and so on. Every option can\n\
         come from the environment: WEIR_QUOTA=1M for --quota 1M; the command line\n\
         wins. A flag can be turned off: --tee=false. No WEIR_* variable reaches the job.\n\
         \n\
         Exit status: the job's own, or death by the job's signal. Without a job: 125\n\
         weir refused, 126 COMMAND cannot be executed, 127 it was not found.\n\
         \n\
         Example: weir run --log build.log --quota 1M -- make -j4\n",
    );
    text
}

pub(super) fn doctor() -> String {
    let mut text = String::from(
        "Usage: weir doctor [OPTIONS] DIR\n\
         \x20      weir doctor [OPTIONS] --root DIR\n\
         \n\
         Says which promises can be kept for logs in DIR (weir run --log DIR/FILE), or\n\
         below it (weir run --root DIR). It starts a run there, all but the job, and\n\
         leaves nothing behind.\n\
         \n\
         \x20 --json                print one JSON object instead of a table\n",
    );
    for spec in OPTIONS.iter().filter(|spec| HEEDED.contains(&spec.name)) {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "  {:21} {}", left_column(spec), spec.help);
    }
    text.push_str(
        "\n\
         The options and their variables are those of the runs that are meant: give the\n\
         same ones here.\n\
         \n\
         Exit status: 0 a run would start, 1 it would be refused, 125 wrong usage.\n\
         \n\
         Example: weir doctor --quota 1M /var/log/jobs\n",
    );
    text
}

pub(super) fn ql3() -> String {
    let mut text = String::from(
        "Usage: weir ql3 argv COMMAND [ARG]...\n\
         \x20      weir ql3 shell\n\
         \n\
         Runs a job for a QingLong 3 client, whose script ends in: exec weir ql3 \"$@\"\n\
         Standard output is the log, which the client has opened. What else the client\n\
         has to say comes in these variables, none of which reaches the job:\n\
         \n",
    );
    for name in VARIABLES {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "  {name}");
    }
    text.push_str(
        "\n\
         With QL3_OUTPUT_QUOTA_FIFO the log is kept inside the quota, and a fact is\n\
         published; a receipt always is.\n\
         \n\
         Exit status: the job's own, or 128 + the job's signal. Without a job: 125 weir\n\
         refused, 126 COMMAND cannot be executed, 127 it was not found.\n",
    );
    text
}

fn left_column(spec: &Spec) -> String {
    match spec.value {
        Some(value) => format!("--{} {value}", spec.long),
        None => format!("--{}", spec.long),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_help_text_fits_a_screen() {
        for text in [overview(), run(), doctor(), ql3(), version()] {
            assert!(text.lines().count() <= 40, "{} lines", text.lines().count());
            for line in text.lines() {
                assert!(line.len() <= 80, "{} columns: {line}", line.len());
            }
        }
    }
}
