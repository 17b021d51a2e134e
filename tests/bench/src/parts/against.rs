//! weir against other readers of the same output.

use super::GIB;
use crate::Fallible;
use crate::bench::Bench;
use crate::reader::{Drained, Flow, Reader};
use crate::results::Row;
use crate::statistics::{Samples, interleaved};

/// One writer's output, and everybody who is to read it.
pub(super) struct Contest<'a> {
    /// How its rows' names begin.
    pub(super) name: &'a str,
    pub(super) what: &'a str,
    pub(super) flow: Flow,
    pub(super) rounds: usize,
    /// Each with the rest of its rows' names.
    pub(super) peers: &'a [(Reader, &'a str)],
}

/// Two rows for each peer: how fast the job is, and what the reader uses.
pub(super) fn rows(bench: &Bench, contest: &Contest<'_>) -> Fallible<Vec<Row>> {
    let peers: Vec<Reader> = contest.peers.iter().map(|(reader, _)| *reader).collect();
    let mut readers = vec![Reader::Weir];
    readers.extend(Reader::present(bench, &peers));
    let found = interleaved(contest.rounds, &readers, |it| it.measure(bench, contest.flow))?;
    let of = |reader: Reader, figure: &dyn Fn(&Drained) -> f64| {
        let at = readers.iter().position(|it| *it == reader)?;
        Samples::of(found[at].iter().map(figure))
    };
    let rate = |drained: &Drained| drained.mb_per_second;
    let cpu = |drained: &Drained| drained.cpu_ms * GIB as f64 / contest.flow.total_bytes as f64;
    let mut rows = Vec::new();
    let cpu_of = format!("{}: reader's cpu", contest.what);
    for (figure, what, unit, end) in [
        (&rate as &dyn Fn(&Drained) -> f64, contest.what, "MB/s", ""),
        (&cpu, &cpu_of, "ms/GiB", ".cpu"),
    ] {
        let weir = of(Reader::Weir, figure).ok_or("no rounds")?;
        for (peer, name) in contest.peers {
            let row = format!("{}.{name}{end}", contest.name);
            let row = Row::alone(&row, (what, unit), weir.clone());
            rows.push(row.beside(peer.name(), of(*peer, figure)));
        }
    }
    Ok(rows)
}
