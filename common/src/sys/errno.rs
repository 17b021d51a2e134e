//! The system's error numbers, with the names that records carry.

use std::fmt;
use std::io;

/// One errno value, kept as the kernel gave it.
///
/// [`name`](Errno::name) is what records and status lines carry (`"ENOSPC"`);
/// `Display` is the system's sentence ("No space left on device").
///
/// ```
/// use weir_common::Errno;
/// let full = Errno::from(std::io::Error::from_raw_os_error(28));
/// assert_eq!(full.name(), "ENOSPC");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(i32);

macro_rules! errnos {
    ($($name:ident)*) => {
        impl Errno {
            $(
                #[doc = concat!("`", stringify!($name), "`, see errno(3).")]
                pub const $name: Errno = Errno(libc::$name);
            )*
        }

        const NAMES: &[(i32, &str)] = &[$((libc::$name, stringify!($name))),*];
    };
}

// Every errno of Linux (asm-generic), in numerical order; aliases (EWOULDBLOCK,
// EDEADLOCK) are left out.
errnos! {
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES
    EFAULT ENOTBLK EBUSY EEXIST EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY
    ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE EDEADLK ENAMETOOLONG ENOLCK
    ENOSYS ENOTEMPTY ELOOP ENOMSG EIDRM ENOSTR ENODATA ETIME ENOSR ENOLINK EPROTO EBADMSG
    EOVERFLOW EILSEQ EUSERS ENOTSOCK EDESTADDRREQ EMSGSIZE EPROTOTYPE ENOPROTOOPT
    EPROTONOSUPPORT ESOCKTNOSUPPORT EOPNOTSUPP EPFNOSUPPORT EAFNOSUPPORT EADDRINUSE
    EADDRNOTAVAIL ENETDOWN ENETUNREACH ENETRESET ECONNABORTED ECONNRESET ENOBUFS EISCONN
    ENOTCONN ESHUTDOWN ETOOMANYREFS ETIMEDOUT ECONNREFUSED EHOSTDOWN EHOSTUNREACH EALREADY
    EINPROGRESS ESTALE EUCLEAN ENOTNAM ENAVAIL EISNAM EREMOTEIO EDQUOT ENOMEDIUM EMEDIUMTYPE
    ECANCELED ENOKEY EKEYEXPIRED EKEYREVOKED EKEYREJECTED EOWNERDEAD ENOTRECOVERABLE ERFKILL
    EHWPOISON
}

impl Errno {
    /// The errno with this number.
    pub const fn from_raw(raw: i32) -> Errno {
        Errno(raw)
    }

    /// The number, as in errno(3).
    pub const fn raw(self) -> i32 {
        self.0
    }

    /// The symbolic name, such as `"ENOSPC"`; `"EUNKNOWN"` for a number that Linux
    /// does not define.
    pub fn name(self) -> &'static str {
        let known = NAMES.iter().find(|(raw, _)| *raw == self.0);
        known.map_or("EUNKNOWN", |(_, name)| name)
    }

    /// The errno with this symbolic name, if Linux defines it. `"EUNKNOWN"` is read too, as
    /// the number 0: a record may carry it.
    pub fn from_name(name: &str) -> Option<Errno> {
        let known = NAMES.iter().find(|(_, known)| *known == name);
        let nameless = (name == Errno(0).name()).then_some(Errno(0));
        known.map(|(raw, _)| Errno(*raw)).or(nameless)
    }

    /// The calling thread's errno, right after a C function failed.
    pub(crate) fn last() -> Errno {
        io::Error::last_os_error().into()
    }
}

impl From<io::Error> for Errno {
    /// An error that does not come from the system counts as `EIO`.
    fn from(error: io::Error) -> Errno {
        Errno(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl From<rustix::io::Errno> for Errno {
    fn from(errno: rustix::io::Errno) -> Errno {
        Errno(errno.raw_os_error())
    }
}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> io::Error {
        io::Error::from_raw_os_error(errno.0)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The standard library appends the number; readers get the name elsewhere.
        let text = io::Error::from(*self).to_string();
        let number = format!(" (os error {})", self.0);
        f.write_str(text.strip_suffix(&number).unwrap_or(&text))
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

impl std::error::Error for Errno {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_number() {
        for (raw, name) in NAMES {
            assert_eq!(Errno::from_name(name), Some(Errno(*raw)));
            assert_eq!(Errno(*raw).name(), *name);
        }
    }

    #[test]
    fn what_is_written_for_a_nameless_number_is_read() {
        // ENOTSUPP, which the kernel keeps to itself, and network file systems let out.
        let read = Errno::from_name(Errno::from_raw(524).name());
        assert_eq!(read.map(Errno::name), Some("EUNKNOWN"));
        assert_eq!(Errno::from_name("ENOPE"), None);
    }

    #[test]
    fn the_sentence_comes_without_the_number() {
        assert_eq!(Errno::ENOSPC.to_string(), "No space left on device");
        assert_eq!(Errno::from_raw(0x7ffe).name(), "EUNKNOWN");
    }
}
