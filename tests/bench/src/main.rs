//! Measures weir beside the programs that it replaces, and against its targets.
//!
//! `tests/bench/run` builds and starts this. The bench calls itself as well: `weir-bench job …`
//! is what runs under weir and its peers ([`jobs`]).
#![forbid(unsafe_code)]

mod args;
mod bench;
mod clock;
mod jobs;
mod machine;
mod parts;
mod peers;
mod place;
mod processes;
mod reader;
mod report;
mod results;
mod run;
mod statistics;
mod targets;
mod wrapper;

use args::{Args, Asked};
use bench::Bench;
use results::{Results, Verdict};
use std::error::Error;
use std::process::ExitCode;

/// Whatever goes wrong here ends a part, and is told in one line.
type Fallible<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let done = match args::parse(std::env::args_os().skip(1)) {
        Ok(Asked::Job(words)) => jobs::run(&words).map(|()| ExitCode::SUCCESS),
        Ok(Asked::Help) => {
            print!("{}", args::HELP);
            Ok(ExitCode::SUCCESS)
        }
        Ok(Asked::Measure(args)) => measure(&args),
        Err(why) => Err(why),
    };
    done.unwrap_or_else(|why| {
        eprintln!("weir-bench: {why}");
        ExitCode::from(2)
    })
}

/// Measures part by part, says what comes of each, and leaves the results in files.
fn measure(args: &Args) -> Fallible<ExitCode> {
    let bench = Bench::prepare(args)?;
    let mut results = report::earlier(args)?;
    results.machine = machine::describe(&bench)?;
    let mut broken = 0;
    for (name, part) in parts::PARTS.iter().filter(|(name, _)| args.wants(name)) {
        eprintln!("weir-bench: {name} ...");
        // What the part before has left to be written would be paid by this one.
        rustix::fs::sync();
        let began_ns = clock::now_ns();
        let measured = part(&bench);
        eprintln!("weir-bench: {name}: {} s", (clock::now_ns() - began_ns) / 1_000_000_000);
        match measured {
            Ok(measured) => {
                print!("{}", report::table(&measured));
                results.put(measured);
            }
            Err(why) => {
                eprintln!("weir-bench: {name}: {why}");
                run::clear_away();
                broken += 1;
            }
        }
    }
    report::leave(args, &results)?;
    print!("\n{}", report::summary(&results));
    Ok(exit_code(args, &results, broken))
}

/// A measurement that broke is a failure; a target that falls short only where that is asked for.
fn exit_code(args: &Args, results: &Results, broken: usize) -> ExitCode {
    let short = results.rows().filter(|row| row.verdict() == Verdict::Short).count();
    match broken > 0 || (args.strict && short > 0) {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}
