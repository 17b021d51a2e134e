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
    *text += &format!("\n## {}\n\n{}\n", part.title, part.note);
    if !part.rows.is_empty() {
        text.push('\n');
        *text += &line(&cells::HEAD.map(str::to_owned));
        *text += "|---|---|--:|---|--:|--:|--:|---|\n";
    }
    for row in &part.rows {
        *text += &line(&cells::of(row).map(|cell| cell.replace('|', "\\|")));
    }
    for (plot, lines) in part.plots() {
        *text += "\n";
        let names = lines.iter().map(|line| line.name.clone());
        *text += &line(&std::iter::once(plot.to_owned()).chain(names).collect::<Vec<_>>());
        *text += &format!("|{}\n", "--:|".repeat(lines.len() + 1));
        for (at, (x, _)) in lines[0].points.iter().enumerate() {
            let figures = lines.iter().map(|line| line.points.get(at).map_or(f64::NAN, |it| it.1));
            let cells = figures.map(cells::figure);
            *text += &line(&std::iter::once(cells::grouped(*x)).chain(cells).collect::<Vec<_>>());
        }
    }
}

fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}
