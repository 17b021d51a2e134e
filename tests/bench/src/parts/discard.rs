//! Output beyond the quota: read and thrown away.

use super::against::{self, Contest};
use super::{KIB, MIB};
use crate::Fallible;
use crate::bench::Bench;
use crate::reader::{Flow, Reader};
use crate::results::Part;

pub(super) fn measure(bench: &Bench) -> Fallible<Part> {
    let note = format!(
        "The writer on processor {}, the reader on {}; weir with a quota of 64 KiB. The writer \
         takes its own time, from its first write until after its last. The bare splice moves \
         the pipe, grown to 256 KiB, to /dev/null and does nothing else.",
        bench.writer, bench.reader
    );
    let mut part = Part::new("discard", "Discard: output beyond the quota", note);
    let peers = [(Reader::Wc, "wc"), (Reader::Splice, "splice")];
    // So slow that it gets less to read.
    let slow = [(Reader::BusyboxWc, "busybox")];
    let (total, less) = (bench.either(384 * MIB, 192 * MIB), bench.either(96 * MIB, 64 * MIB));
    for (name, what, write) in
        [("discard.128k", "128 KiB writes", 128 * KIB), ("discard.4k", "4 KiB writes", 4 * KIB)]
    {
        let flow =
            |total_bytes| Flow { write_bytes: write as usize, total_bytes, quota_bytes: 64 * KIB };
        // Two processors that hand over to each other know a fast and a slow way, and
        // change between them: rather more runs than longer ones.
        let (flow, slow_flow) = (flow(total), flow(less));
        let rounds = bench.either(15, 5);
        let contest = Contest { name, what, flow, rounds, peers: &peers };
        part.rows.extend(against::rows(bench, &contest)?);
        let rounds = bench.either(5, 3);
        let contest = Contest { name, what, flow: slow_flow, rounds, peers: &slow };
        part.rows.extend(against::rows(bench, &contest)?);
    }
    Ok(part)
}
