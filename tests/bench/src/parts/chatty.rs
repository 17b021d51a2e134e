//! Many small writes.

use super::against::{self, Contest};
use super::{GIB, KIB, MIB};
use crate::Fallible;
use crate::bench::Bench;
use crate::reader::{Flow, Reader};
use crate::results::{Part, Row};

pub(super) fn measure(bench: &Bench) -> Fallible<Part> {
    let note = format!(
        "Lines of 80 bytes, each in a write of its own, and writes of other sizes, as fast as \
         they are taken. The writer on processor {}, the reader on {}.",
        bench.writer, bench.reader
    );
    let mut part = Part::new("chatty", "Chatty jobs: small writes at full speed", note);
    part.rows = lines(bench)?;
    for write_bytes in [512, 1000, 2000, 4096, 16_384, 131_072] {
        part.rows.push(never_slower(bench, write_bytes)?);
    }
    Ok(part)
}

fn lines(bench: &Bench) -> Fallible<Vec<Row>> {
    let kept = [
        (Reader::Cat, "cat"),
        (Reader::StdbufHead, "head"),
        (Reader::BusyboxDd, "dd"),
        (Reader::S6Log, "s6"),
        (Reader::Multilog, "multilog"),
        (Reader::Svlogd, "svlogd"),
    ];
    let dropped = [(Reader::Wc, "wc")];
    let total_bytes = bench.either(32 * MIB, 8 * MIB);
    let flow = |quota_bytes| Flow { write_bytes: 80, total_bytes, quota_bytes };
    let contest = |what, flow, peers| {
        let rounds = bench.either(7, 3);
        against::rows(bench, &Contest { name: "chatty", what, flow, rounds, peers })
    };
    let mut rows = contest("80-byte lines, kept", flow(GIB), &kept)?;
    rows.extend(contest("80-byte lines, dropped", flow(64 * KIB), &dropped)?);
    Ok(rows)
}

/// What makes small writes faster must not slow down larger ones.
fn never_slower(bench: &Bench, write_bytes: usize) -> Fallible<Row> {
    // About as long for each size.
    let full = (write_bytes as u64 * 200_000).min(192 * MIB);
    let contest = Contest {
        name: "chatty",
        what: &format!("{write_bytes}-byte writes, kept"),
        flow: Flow { write_bytes, total_bytes: bench.either(full, full / 3), quota_bytes: GIB },
        rounds: bench.either(11, 5),
        peers: &[(Reader::Cat, "cat")],
    };
    let rows = against::rows(bench, &contest)?;
    let rate = rows.into_iter().next().ok_or("no row")?;
    Ok(Row { name: "chatty.never-slower".to_owned(), ..rate })
}
