//! The files that results are left in.

use super::{markdown, plots};
use crate::Fallible;
use crate::args::Args;
use crate::results::Results;
use std::path::Path;

const JSON: &str = "results.json";

/// What earlier runs have found out, where that is to be added to.
pub(crate) fn earlier(args: &Args) -> Fallible<Results> {
    let path = args.out.join(JSON);
    if !args.add || !path.exists() {
        return Ok(Results::default());
    }
    Results::from_json(&serde_json::from_slice(&std::fs::read(path)?)?)
}

/// Leaves everything, each file whole or not at all.
pub(crate) fn leave(args: &Args, results: &Results) -> Fallible<()> {
    std::fs::create_dir_all(&args.out)?;
    let json = serde_json::to_string_pretty(&results.to_json())? + "\n";
    leave_one(&args.out.join(JSON), &json)?;
    leave_one(&args.out.join("results.md"), &markdown::text(results))?;
    for (name, plot) in plots::draw(results) {
        leave_one(&args.out.join(name), &plot)?;
    }
    Ok(())
}

fn leave_one(path: &Path, text: &str) -> Fallible<()> {
    let draft = path.with_extension("tmp");
    std::fs::write(&draft, text)?;
    std::fs::rename(&draft, path)?;
    println!("{}", path.display());
    Ok(())
}
