//! Tables for a terminal.

use super::cells;
use crate::results::{Part, Results, Verdict};
use std::fmt::Write;

/// One part, its columns below each other.
pub(crate) fn table(part: &Part) -> String {
    let mut lines = vec![cells::HEAD.map(str::to_owned)];
    lines.extend(part.rows.iter().map(cells::of));
    let mut text = format!("\n{}\n{}\n", part.title, part.note);
    if part.rows.is_empty() {
        return text;
    }
    for line in &lines {
        let mut aligned = String::new();
        for (column, cell) in line.iter().enumerate() {
            let width = lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
            let pad = " ".repeat(width - cell.chars().count());
            // Figures stand below each other by their ends.
            let is_figure = matches!(column, 2 | 4 | 5 | 6);
            aligned += &if is_figure { format!("{pad}{cell}  ") } else { format!("{cell}{pad}  ") };
        }
        text += aligned.trim_end();
        text.push('\n');
    }
    text
}

/// How many rows are as they should be, and those that are not.
pub(crate) fn summary(results: &Results) -> String {
    let count = |verdict| results.rows().filter(|row| row.verdict() == verdict).count();
    let mut text = format!("{}\n", cells::KEY);
    // Writing into a string cannot fail.
    let _ = writeln!(
        text,
        "{} pass, {} short, {} without a peer, {} for information",
        count(Verdict::Pass),
        count(Verdict::Short),
        count(Verdict::NoPeer),
        count(Verdict::Info),
    );
    for row in results.rows().filter(|row| row.verdict() == Verdict::Short) {
        let [what, unit, weir, peer, _, ratio, target, _] = cells::of(row);
        let against = row.ratio().map(|_| format!(", {ratio} of {peer}")).unwrap_or_default();
        let _ = writeln!(text, "short: {what}: {weir} {unit}{against}, target {target}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Row;
    use crate::statistics::Samples;

    #[test]
    fn columns_are_aligned() {
        let row = |what: &str, weir: f64| {
            let row = Row::alone("size", (what, "B"), Samples::of([weir]).expect("one"));
            row.beside("p", Samples::of([2000.0]))
        };
        let mut part = Part::new("size", "Size", "Note.".to_owned());
        part.rows = vec![row("a", 5.0), row("longer", 1000.0)];
        let text = table(&part);
        let lines: Vec<&str> = text.lines().skip(3).collect();
        assert_eq!(
            lines,
            [
                "what    unit   weir  peer  its figure  weir / peer     target  verdict",
                "a       B      5.00  p          2,000       0.003×  ≤ 327,680  pass",
                "longer  B     1,000  p          2,000        0.50×  ≤ 327,680  pass",
            ]
        );
    }
}
