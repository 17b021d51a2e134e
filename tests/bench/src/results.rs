//! What was measured, and what it is worth.

mod json;
mod verdict;

pub(crate) use verdict::Verdict;

use crate::statistics::Samples;
use crate::targets::{self, Target};
use serde_json::Value;

/// What is kept of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figure {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) count: usize,
}

impl From<Samples> for Figure {
    fn from(samples: Samples) -> Figure {
        let (median, min, max) = (samples.median(), samples.min(), samples.max());
        Figure { median, min, max, count: samples.count() }
    }
}

/// One thing that was measured of weir, and of one peer where there is one to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// Its name among the targets.
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) unit: String,
    pub(crate) weir: Figure,
    pub(crate) peer: Option<Peer>,
}

/// What weir is held against.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Peer {
    pub(crate) name: String,
    /// None where it is not here.
    pub(crate) figure: Option<Figure>,
}

impl Row {
    /// A row of weir alone.
    pub(crate) fn alone(name: &str, (what, unit): (&str, &str), weir: Samples) -> Row {
        let weir = weir.into();
        Row {
            name: name.to_owned(),
            what: what.to_owned(),
            unit: unit.to_owned(),
            weir,
            peer: None,
        }
    }

    /// The same beside a peer, that may not be here.
    pub(crate) fn beside(self, peer: &str, samples: Option<Samples>) -> Row {
        let figure = samples.map(Figure::from);
        Row { peer: Some(Peer { name: peer.to_owned(), figure }), ..self }
    }

    /// The peer's figure, where it is here.
    pub(crate) fn peer_figure(&self) -> Option<Figure> {
        self.peer.as_ref().and_then(|peer| peer.figure)
    }

    /// weir's median over the peer's.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let peer = self.peer_figure()?;
        (peer.median != 0.0).then(|| self.weir.median / peer.median)
    }

    pub(crate) fn target(&self) -> Target {
        targets::of(&self.name)
    }

    pub(crate) fn verdict(&self) -> Verdict {
        Verdict::on(self)
    }
}

/// A line of a plot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    /// Which plot.
    pub(crate) plot: String,
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Everything about one subject.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) title: String,
    /// How it was measured, in a sentence or two.
    pub(crate) note: String,
    pub(crate) rows: Vec<Row>,
    pub(crate) series: Vec<Series>,
}

impl Part {
    pub(crate) fn new(name: &str, title: &str, note: String) -> Part {
        let (name, title) = (name.to_owned(), title.to_owned());
        Part { name, title, note, ..Part::default() }
    }

    /// Its lines, plot by plot.
    pub(crate) fn plots(&self) -> Vec<(&str, Vec<&Series>)> {
        let by_plot = self.series.chunk_by(|one, next| one.plot == next.plot);
        by_plot.map(|lines| (lines[0].plot.as_str(), lines.iter().collect())).collect()
    }
}

/// All parts, and the machine that they were measured on.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Results {
    pub(crate) machine: Value,
    pub(crate) parts: Vec<Part>,
}

impl Results {
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.parts.iter().flat_map(|part| &part.rows)
    }

    /// Lines of one plot.
    pub(crate) fn plot(&self, name: &str) -> Vec<&Series> {
        let all = self.parts.iter().flat_map(|part| &part.series);
        all.filter(|series| series.plot == name).collect()
    }

    /// Takes a part in, for the one that was there, in the order in which they are run.
    pub(crate) fn put(&mut self, part: Part) {
        self.parts.retain(|other| other.name != part.name);
        self.parts.push(part);
        let order = |name: &str| crate::parts::PARTS.iter().position(|(part, _)| *part == name);
        self.parts.sort_by_key(|part| order(&part.name));
    }
}
