//! The driver contract: what stands between sockets and a kernel, real or simulated. It is small and safe to implement;
//! `ARCHITECTURE.md` tells how ("How to write a driver"), and a suite behind the feature `testing` checks it.
//!
//! A [`Driver`] makes [`Source`]s and waits; a source takes operations. What an operation needs belongs to the driver
//! from [`Source::submit`] until [`InFlight::finish`]: its buffers too. That is the native shape of a kernel that
//! completes operations. A kernel that says when a source is ready fits under it: its driver keeps the operation, and acts
//! when it is told.
//!
//! What is borrowed cannot be given to a kernel. So a source also tries what it is asked to try, then and there, and says when to
//! try again: [`Source::watch`].

mod address;
mod in_flight;
mod later_watchers;
mod lease;
mod life;
mod operation;
mod options;
mod parked;
mod request;
mod source;
mod standard;
mod watchers;

pub use address::Address;
pub use in_flight::{Finished, InFlight, OperationId};
pub use lease::{LEASE_BYTES, LEASES_KEPT, Lease};
pub(crate) use operation::IoOperation;
pub use options::{ListenOptions, SocketOption};
pub use parked::Parked;
pub use request::{Interest, Request, RequestMut, Room, Words};
pub use source::{Accepted, Source, Submitted};
pub use standard::StandardSocket;
pub use watchers::{Ticket, Watched, Watchers};

use core::net::IpAddr;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use crate::signal_hub::SignalHub;

/// A kernel, as an I/O context sees it. One thread, the context's, calls [`wait`](Driver::wait); all else may be called from
/// any thread.
pub trait Driver: Send + Sync + 'static {
    /// What the clock of the context says.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// A source that listens for streams at this address. Does not block.
    ///
    /// # Errors
    /// What the kernel says: the address is in use, there are no descriptors left, …
    fn listen(&self, at: &Address, options: &ListenOptions) -> io::Result<Arc<dyn Source>>;

    /// A stream that can be connected to addresses of this kind, by [`Request::Connect`]. Does not block.
    ///
    /// # Errors
    /// What the kernel says.
    fn stream(&self, like: &Address) -> io::Result<Arc<dyn Source>>;

    /// A source for datagrams at this address. Does not block.
    ///
    /// # Errors
    /// What the kernel says.
    fn datagrams(&self, at: &Address, options: &ListenOptions) -> io::Result<Arc<dyn Source>>;

    /// Two streams that are connected with each other.
    ///
    /// # Errors
    /// What the kernel says; drivers without such pairs say [`Unsupported`](io::ErrorKind::Unsupported).
    fn pair(&self) -> io::Result<(Arc<dyn Source>, Arc<dyn Source>)> {
        Err(unsupported("pairs of streams"))
    }

    /// A source out of a socket of the standard library. It is made non-blocking.
    ///
    /// # Errors
    /// What the kernel says; drivers without descriptors say [`Unsupported`](io::ErrorKind::Unsupported).
    fn adopt(&self, socket: StandardSocket) -> io::Result<Arc<dyn Source>> {
        let _ = socket;
        Err(unsupported("sockets of the standard library"))
    }

    /// The addresses of a host, for drivers that know hosts by name. Others say `None`, and the system is asked.
    fn lookup(&self, host: &str) -> Option<io::Result<Vec<IpAddr>>> {
        let _ = host;
        None
    }

    /// The signals of the programs that run here, for drivers that have their own: those of a simulated host. Others say
    /// `None`, and those of the process are heard.
    fn signals(&self) -> Option<Arc<SignalHub>> {
        None
    }

    /// Waits until something was finished, until the clock says `until`, or until [`wake`](Driver::wake) is called; `None` is
    /// for ever, a time that has passed does not wait. Finishes what can be finished, and tells those who wait, without a lock
    /// held. May return for no reason.
    ///
    /// # Errors
    /// If the kernel cannot be waited for at all. The context does not go on then.
    fn wait(&self, until: Option<Instant>) -> io::Result<()>;

    /// Ends the [`wait`](Driver::wait) that is going on or, if there is none, the next one.
    fn wake(&self);

    /// How many operations are in flight, and how many wait until an attempt may succeed: what the context counts as work. If there
    /// are some, and the last of them goes by what another thread does, the [`wait`](Driver::wait) that is going on ends, or the next
    /// one: whoever has asked asks again.
    fn in_flight(&self) -> usize;

    /// Finishes all that is in flight with an error, and all that is submitted from now on. Its sources stay, and fail.
    fn shut_down(&self);

    /// The descriptor that is readable when [`wait`](Driver::wait) would not wait, for guests in a foreign loop.
    #[cfg(unix)]
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }

    /// Whether the clock jumps to the time that [`wait`](Driver::wait) is given, as virtual time does: then that is the exact time
    /// of the next timer, and not one that several share.
    fn jumps(&self) -> bool {
        false
    }

    /// How many pieces of work the context runs between two waits at the most.
    fn look_each(&self) -> u32 {
        convoke_exec::raw::LOOK_EACH
    }

    /// Which of so many queued pieces of work is run next; asked as [`look_each`](Driver::look_each) says.
    fn choose(&self, queued: usize) -> usize {
        let _ = queued;
        0
    }
}

/// The error of what a driver does not do.
pub fn unsupported(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("this driver has no {what}"))
}

/// The error of what is in flight when its driver shuts down, or submitted afterwards.
pub fn shut_down() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the I/O context has shut down")
}
