//! Results as Markdown: a table for each part.

use super::cells;
use crate::results::{Part, Results};
use serde_json::Value;
use std::fmt::Write;

pub(super) fn text(results: &Results) -> String {
    let machine = &results.machine;
    let word = |key: &str| match &machine[key] {
        Value::String(word) => word.clone(),
        other => other.to_string(),
    };
    let mut text = format!(
        "{} ({} bytes), measured {} on {} processors ({}), {} MiB, {}, logs on {}.\n\n{}\n",
        word("weirVersion"),
        word("weirBytes"),
        word("dateUtc"),
        word("cpus"),
        word("cpu"),
        word("memoryMiB"),
        word("kernel"),
        word("scratchFileSystem"),
        cells::KEY,
    );
    results.parts.iter().for_each(|part| add(&mut text, part));
    text.push_str("\n## Peers\n\n");
    for (name, version) in machine["peers"].as_object().into_iter().flatten() {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "- {name}: {}", version.as_str().unwrap_or("unknown"));
    }
    text
}

fn add(text: &mut String, part: &Part) {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    *text += &format!("\n## {}\n\n{}\n\n", part.title, part.note);
    *text += &line(&cells::HEAD.map(str::to_owned));
    *text += "|---|---|--:|---|--:|--:|--:|---|\n";
    for row in &part.rows {
        *text += &line(&cells::of(row).map(|cell| cell.replace('|', "\\|")));
    }
}
