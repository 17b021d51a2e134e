//! This process's limits: getrlimit(2), setrlimit(2).

use super::errno::Errno;

// The type of these differs between C libraries.
#[cfg(target_env = "gnu")]
type Number = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Number = libc::c_int;

/// Which limit.
#[derive(Clone, Copy)]
pub(super) struct Limit(Number);

/// How long a file may get.
pub(super) const FILE_BYTES: Limit = Limit(libc::RLIMIT_FSIZE);
/// How many descriptors there may be.
pub(super) const DESCRIPTORS: Limit = Limit(libc::RLIMIT_NOFILE);

/// A limit's soft and hard value.
#[derive(Clone, Copy)]
pub(super) struct Values(libc::rlimit);

impl Values {
    /// What is in force.
    pub(super) fn soft(self) -> u64 {
        self.0.rlim_cur
    }

    /// The same with another soft value.
    pub(super) fn with_soft(self, soft: u64) -> Values {
        Values(libc::rlimit { rlim_cur: soft, ..self.0 })
    }
}

/// Asks for a limit. (rustix takes it for granted that this works; a filter of system calls
/// may see to it that it does not.)
pub(super) fn get(limit: Limit) -> Result<Values, Errno> {
    let mut values = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: it writes to the one structure that it is given.
    let answer = unsafe { libc::getrlimit(limit.0, &mut values) };
    if answer < 0 { Err(Errno::last()) } else { Ok(Values(values)) }
}

/// Sets a limit.
pub(super) fn set(limit: Limit, values: Values) -> Result<(), Errno> {
    // SAFETY: it reads the one structure that it is given.
    let answer = unsafe { libc::setrlimit(limit.0, &values.0) };
    if answer < 0 { Err(Errno::last()) } else { Ok(()) }
}
