//! Output within the quota: into the log.

use super::against::{self, Contest};
use super::{GIB, KIB, MIB};
use crate::Fallible;
use crate::bench::Bench;
use crate::reader::{Flow, Reader};
use crate::results::Part;

pub(super) fn measure(bench: &Bench) -> Fallible<Part> {
    let note = format!(
        "The writer on processor {}, the reader on {}; every byte is kept, nobody syncs, and \
         logs are removed between runs.",
        bench.writer, bench.reader
    );
    let mut part = Part::new("capture", "Capture: output within the quota", note);
    let peers = [(Reader::Cat, "cat"), (Reader::StdbufHead, "head")];
    let total_bytes = bench.either(192 * MIB, 128 * MIB);
    for (name, what, write_bytes) in
        [("capture.128k", "128 KiB writes", 128 * KIB), ("capture.4k", "4 KiB writes", 4 * KIB)]
    {
        let flow = Flow { write_bytes: write_bytes as usize, total_bytes, quota_bytes: GIB };
        let rounds = bench.either(15, 5);
        part.rows
            .extend(against::rows(bench, &Contest { name, what, flow, rounds, peers: &peers })?);
    }
    Ok(part)
}
