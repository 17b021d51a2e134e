//! Lines in panels beside each other, as SVG: on white, so that they can be read on any page.

use super::cells::figure;
use super::scale::{Scale, ticks};
use crate::results::Series;
use std::fmt::Write;

/// One coordinate system.
pub(super) struct Panel<'a> {
    pub(super) title: &'a str,
    pub(super) lines: Vec<&'a Series>,
    pub(super) x: Axis<'a>,
    /// What the vertical axis is of.
    pub(super) y: &'a str,
}

/// The horizontal axis: from its first mark to its last.
pub(super) struct Axis<'a> {
    pub(super) label: &'a str,
    pub(super) ticks: &'a [(f64, &'a str)],
}

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 400.0;
/// Around the coordinates, for what is written there.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 110.0;
/// Of a palette that can be told apart without seeing all colours; weir's is the first.
const COLOURS: [&str; 6] = ["#d55e00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"];

/// The whole picture; none where no panel has a line.
pub(super) fn picture(panels: &[Panel<'_>]) -> Option<String> {
    let panels: Vec<&Panel<'_>> = panels.iter().filter(|panel| !panel.lines.is_empty()).collect();
    if panels.is_empty() {
        return None;
    }
    let width = WIDTH * panels.len() as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {HEIGHT}\" width=\"{width}\" \
         height=\"{HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n\
         <rect width=\"{width}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
    );
    for (at, panel) in panels.iter().enumerate() {
        text += &format!("<g transform=\"translate({} 0)\">\n", WIDTH * at as f64);
        text += &draw(panel);
        text += "</g>\n";
    }
    text += "</svg>\n";
    Some(text)
}

fn draw(panel: &Panel<'_>) -> String {
    let ends = (panel.x.ticks.first(), panel.x.ticks.last());
    let (Some((first, _)), Some((last, _))) = ends else { return String::new() };
    let x = Scale::new((*first, *last), (LEFT, WIDTH - RIGHT));
    let heights = panel.lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
    let up = ticks(heights);
    let y = Scale::new((up[0], up[up.len() - 1]), (HEIGHT - BOTTOM, TOP));
    let mut text = axes(panel, x, (y, &up));
    for (at, line) in panel.lines.iter().enumerate() {
        text += &curve(line, at, |(across, up)| (x.at(across), y.at(up)));
    }
    text + &legend(&panel.lines)
}

/// The frame, its marks and what they are of.
fn axes(panel: &Panel<'_>, x: Scale, (y, ticks): (Scale, &[f64])) -> String {
    let (right, bottom, middle) = (WIDTH - RIGHT, HEIGHT - BOTTOM, (LEFT + WIDTH - RIGHT) / 2.0);
    let mut text = format!(
        "<text x=\"{middle}\" y=\"22\" text-anchor=\"middle\" font-size=\"15\" \
         font-weight=\"bold\">{}</text>\n",
        escaped(panel.title)
    );
    // Writing into a string cannot fail.
    for tick in ticks {
        let up = y.at(*tick);
        let _ = writeln!(
            text,
            "<path d=\"M{LEFT} {up:.1}H{right}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            up + 4.0,
            figure(*tick).trim_end_matches(".00").trim_end_matches(".0"),
        );
    }
    for (tick, label) in panel.x.ticks {
        let across = x.at(*tick);
        let _ = writeln!(
            text,
            "<path d=\"M{across:.1} {TOP}V{bottom}\" stroke=\"#ddd\"/><text x=\"{across:.1}\" \
             y=\"{}\" text-anchor=\"middle\">{label}</text>",
            bottom + 16.0,
        );
    }
    let _ = writeln!(
        text,
        "<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"#222\"/>\n\
         <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
         <text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        bottom + 34.0,
        escaped(panel.x.label),
        (TOP + bottom) / 2.0,
        escaped(panel.y),
    );
    text
}

/// A line with a dot at each point; weir's, the first, is the thickest.
fn curve(line: &Series, at: usize, place: impl Fn((f64, f64)) -> (f64, f64)) -> String {
    let colour = COLOURS[at % COLOURS.len()];
    let width = if at == 0 { 3 } else { 2 };
    let points: Vec<(f64, f64)> = line.points.iter().copied().map(place).collect();
    let list: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let mut text = format!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"/>\n",
        list.join(" ")
    );
    for (x, y) in points {
        text += &format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{width}\" fill=\"{colour}\"/>\n");
    }
    text
}

/// Who is who, in two columns below.
fn legend(lines: &[&Series]) -> String {
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        let x = LEFT + (at % 2) as f64 * 190.0;
        let y = HEIGHT - BOTTOM + 56.0 + (at / 2) as f64 * 20.0;
        let (colour, width) = (COLOURS[at % COLOURS.len()], if at == 0 { 3 } else { 2 });
        text += &format!(
            "<path d=\"M{x} {y}h24\" stroke=\"{colour}\" stroke-width=\"{width}\"/>\
             <circle cx=\"{}\" cy=\"{y}\" r=\"{width}\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"{}\">{}</text>\n",
            x + 12.0,
            x + 32.0,
            y + 4.0,
            escaped(&line.name)
        );
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_shows_every_line_by_name_and_nothing_of_an_empty_panel() {
        let series = |name: &str| {
            let points = vec![(1.0, 100.0), (10.0, 1000.0)];
            Series { plot: "p".to_owned(), name: name.to_owned(), points }
        };
        let (one, two) = (series("weir"), series("cat >>log"));
        let panel = |lines| Panel {
            title: "T",
            lines,
            x: Axis { label: "x", ticks: &[(1.0, "1"), (10.0, "10")] },
            y: "y",
        };
        let drawn = picture(&[panel(vec![&one, &two]), panel(vec![])]).expect("a picture");
        assert!(drawn.contains(">weir</text>") && drawn.contains(">cat &gt;&gt;log</text>"));
        // From the lower left to the upper right.
        assert!(drawn.contains("points=\"70.0,290.0 440.0,40.0\""), "{drawn}");
        assert_eq!(drawn.matches("<g ").count(), 1);
        assert_eq!(picture(&[panel(vec![])]), None);
    }
}
