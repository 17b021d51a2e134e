//! Output beyond the quota: read and thrown away.

use super::against::{self, Contest};
use super::{GIB, KIB, MIB};
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
    let peers = [(Reader::Wc, "wc"), (Reader::Splice, "splice"), (Reader::BusyboxWc, "busybox")];
    for (name, what, write_bytes, total_bytes) in [
        ("discard.128k", "128 KiB writes", 128 * KIB, bench.either(GIB, 256 * MIB)),
        ("discard.4k", "4 KiB writes", 4 * KIB, bench.either(512 * MIB, 256 * MIB)),
    ] {
        let flow = Flow { write_bytes: write_bytes as usize, total_bytes, quota_bytes: 64 * KIB };
        let rounds = bench.either(9, 3);
        part.rows
            .extend(against::rows(bench, &Contest { name, what, flow, rounds, peers: &peers })?);
    }
    Ok(part)
}
