//! The size of the program itself.

use crate::Fallible;
use crate::bench::{Bench, length};
use crate::results::{Part, Row};
use crate::statistics::Samples;

pub(super) fn measure(bench: &Bench) -> Fallible<Part> {
    let note = "Bytes of the executable file.".to_owned();
    let mut part = Part::new("size", "Size", note);
    let bytes = Samples::of([length(&bench.weir)? as f64]).ok_or("no size")?;
    part.rows.push(Row::alone("size", ("executable", "bytes"), bytes.clone()));
    for peer in ["tini-static", "catatonit"] {
        let theirs = bench.peers.path(peer).map(length).transpose()?;
        let row = Row::alone(&format!("size.{peer}"), ("executable", "bytes"), bytes.clone());
        part.rows.push(row.beside(peer, Samples::of(theirs.map(|bytes| bytes as f64))));
    }
    Ok(part)
}
