//! How fast a job is over the size of its writes: a plot.

use super::{GIB, KIB, MIB};
use crate::Fallible;
use crate::bench::Bench;
use crate::reader::{Flow, Reader};
use crate::results::{Part, Series};
use crate::statistics::{Samples, interleaved};

const WRITES: [usize; 10] = [80, 256, 512, 1024, 2048, 4096, 8192, 16_384, 65_536, 131_072];

pub(super) fn measure(bench: &Bench) -> Fallible<Part> {
    let note = format!(
        "Medians of {} runs for each size and reader; weir's quota is 1 GiB for capture and \
         64 KiB for discard. See throughput.svg.",
        rounds(bench)
    );
    let mut part = Part::new("throughput", "Throughput over the size of writes", note);
    let capture = [Reader::Weir, Reader::Cat, Reader::StdbufHead, Reader::S6Log];
    part.series = lines(bench, "capture", &capture, GIB)?;
    let discard = [Reader::Weir, Reader::Wc, Reader::Splice];
    part.series.extend(lines(bench, "discard", &discard, 64 * KIB)?);
    Ok(part)
}

fn rounds(bench: &Bench) -> usize {
    bench.either(5, 1)
}

fn lines(bench: &Bench, plot: &str, readers: &[Reader], quota_bytes: u64) -> Fallible<Vec<Series>> {
    let readers = Reader::present(bench, readers);
    let series = |reader: &Reader| Series {
        plot: plot.to_owned(),
        name: reader.name().to_owned(),
        points: Vec::new(),
    };
    let mut lines: Vec<Series> = readers.iter().map(series).collect();
    for write_bytes in WRITES {
        // About as long for each size.
        let full = (write_bytes as u64 * 150_000).min(bench.either(160 * MIB, 64 * MIB));
        let flow = Flow { write_bytes, total_bytes: full, quota_bytes };
        let found = interleaved(rounds(bench), &readers, |it| it.measure(bench, flow))?;
        for (line, drained) in lines.iter_mut().zip(found) {
            let rates = Samples::of(drained.iter().map(|drained| drained.mb_per_second));
            let rate = rates.ok_or("no rounds")?.median();
            line.points.push((write_bytes as f64, rate));
        }
    }
    Ok(lines)
}
