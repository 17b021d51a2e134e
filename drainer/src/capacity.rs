//! How much the stream's pipe holds: more while there is heavy output, and only then.

use std::os::fd::AsFd;
use weir_common::sys::pipes;

/// What a pipe is made for heavy output. Large writes go through four times as fast as
/// with the usual 64 KiB, and no faster with more.
pub(crate) const HEAVY_BYTES: usize = 256 << 10;

/// The capacity of one pipe.
#[derive(Debug)]
pub(crate) enum Capacity {
    /// Not asked for yet.
    Unknown,
    /// The one that it was made with.
    Usual { bytes: usize },
    /// Grown from that.
    Grown { usual_bytes: usize },
    /// It is to stay as it is.
    Fixed { bytes: usize },
}

impl Capacity {
    /// Asks for it, if it is not known.
    pub(crate) fn look(&mut self, pipe: impl AsFd) {
        if let Capacity::Unknown = self {
            *self = match pipes::capacity(pipe) {
                Ok(bytes) => Capacity::Usual { bytes },
                Err(_) => Capacity::Fixed { bytes: HEAVY_BYTES },
            };
        }
    }

    /// How many bytes the pipe holds.
    pub(crate) fn bytes(&self) -> usize {
        match *self {
            Capacity::Usual { bytes } | Capacity::Fixed { bytes } => bytes,
            Capacity::Grown { .. } | Capacity::Unknown => HEAVY_BYTES,
        }
    }

    pub(crate) fn is_grown(&self) -> bool {
        matches!(self, Capacity::Grown { .. })
    }

    /// Makes room for heavy output, unless the user's other pipes would suffer.
    pub(crate) fn grow(&mut self, pipe: impl AsFd) {
        let Capacity::Usual { .. } = *self else { return };
        *self = match pipes::capacity(&pipe) {
            // Whoever has made it larger meanwhile wants it so.
            Ok(bytes) if bytes >= HEAVY_BYTES => Capacity::Fixed { bytes },
            Ok(bytes) if !pipes::have_room() => Capacity::Fixed { bytes },
            Ok(bytes) => match pipes::set_capacity(pipe, HEAVY_BYTES) {
                Ok(()) => Capacity::Grown { usual_bytes: bytes },
                Err(_) => Capacity::Fixed { bytes },
            },
            Err(_) => Capacity::Fixed { bytes: self.bytes() },
        };
    }

    /// Gives back what is not needed any more.
    pub(crate) fn give_back(&mut self, pipe: impl AsFd) {
        let Capacity::Grown { usual_bytes } = *self else { return };
        *self = match pipes::capacity(&pipe) {
            Ok(HEAVY_BYTES) => match pipes::set_capacity(pipe, usual_bytes) {
                Ok(()) => Capacity::Usual { bytes: usual_bytes },
                // Something is in it again.
                Err(_) => return,
            },
            Ok(bytes) => Capacity::Fixed { bytes },
            Err(_) => return,
        };
    }
}
