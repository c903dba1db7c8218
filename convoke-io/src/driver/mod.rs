//! The driver contract: the interface between sockets and a kernel, real or simulated. A driver needs no
//! unsafe code, unless its kernel accesses buffers on its own.
//!
//! # The protocol
//! A [`Driver`] creates [`Source`]s (sockets) and waits for events. A source is used in two ways:
//!
//! - **Attempts** (readiness). A `try_*` call borrows its buffer, does what can be done now, and returns.
//!   After [`WouldBlock`](io::ErrorKind::WouldBlock) the caller registers a waker with [`Source::watch`] and
//!   gets a [`Ticket`]. The driver wakes it once. [`Source::unwatch`] withdraws it at any time.
//! - **Operations** (completion). [`Source::submit`] hands an [`InFlight`] to the driver. From then on the
//!   request and its buffers belong to the driver, until exactly one of these happens: [`InFlight::finish`],
//!   [`Submitted::Done`], or [`Source::cancel`] returns the operation. The owner of the operation keeps its
//!   memory in place until then.
//!
//! Which calls are made when, and on which thread:
//!
//! | call | thread | rule |
//! | --- | --- | --- |
//! | [`Driver::wait`], [`Driver::check`] | the context's only | one at a time; a task that it wakes may call it again |
//! | [`Driver::wake`] | any | ends the current `wait` or, if there is none, the next one |
//! | [`Driver::in_flight`] | any | before each sleep; includes watchers |
//! | [`Driver::listen`] and the other constructors | any | never block |
//! | `try_*`, `submit`, `watch`, `unwatch`, `cancel` | any | several threads at once on one source; never block |
//! | [`InFlight::finish`] | any | once, under the lock that `cancel` takes |
//! | dropping a [`Finished`] | any | with no lock held: it runs code of the program |
//! | [`Driver::shut_down`] | any | may be called twice; sources may outlive it |
//!
//! # How to write a driver
//! `convoke-sim` is the shortest driver to read; `convoke-poll` is one for a kernel that reports readiness.
//! Both use the same file names for the same parts.
//!
//! 1. **Create sources.** No constructor blocks. A source closes when its last reference is dropped; an
//!    operation in flight holds one.
//! 2. **Try.** Each `try_*` call is done with its buffer when it returns. If the driver knows that a call
//!    would block, it needs no system call to say so. It may conclude that from a short read only if the
//!    kernel reports a hang-up as an event of its own; otherwise the end of the stream is lost.
//! 3. **Register watchers.** `watch` tests readiness again under the lock of the direction, and only then
//!    stores the waker; otherwise an event between the two is missed. [`Watchers`] is such a list. `watch`
//!    returns `None` for "try again now".
//! 4. **Park operations.** A readiness driver tries the operation and, if it would block, keeps it in a
//!    [`Parked`] list, which is linked through the operations themselves. A completion driver passes the
//!    buffer to its kernel.
//! 5. **Cancel.** `cancel` returns an operation that has not begun. One that has begun finishes soon, with
//!    the bytes that were transferred: none may be lost.
//! 6. **Notify without a lock.** Collect each [`Finished`], release every lock, then drop them. Move the
//!    collection out of the driver first: a notified task may call `wait` again. Only
//!    [`Watchers::wake_first_locally`] is allowed under a lock, since it merely queues a task of this thread.
//! 7. **Count.** [`Driver::in_flight`] keeps a context running. If another thread removes the last operation
//!    or watcher, end the current `wait`, so that the context counts again.
//! 8. **Shut down.** Finish every operation with the error [`shut_down`], wake every watcher, and let every
//!    later call fail, `try_*` too: an attempt that reports `WouldBlock` for ever is retried for ever.
//! 9. **Test.** Run the suite `testing::driver_contract`, model the races with loom, and count allocations:
//!    `wait` allocates nothing once it is warm.
//!
//! # What io_uring and files will need
//! - **io_uring** takes [`ReadBuffer::as_raw`] and [`WriteBuffer::as_raw`], and [`OperationId::number`] as
//!   user data. While the kernel has a buffer its [`InFlight`] must not be finished, dropped or returned by
//!   `cancel`, and `shut_down` waits for the kernel. An operation ends when the kernel confirms it. If that
//!   confirms a cancellation without a transfer, the task is to be stopped: the contract still needs a way to
//!   finish an operation like that, since `finish` only takes a result. A ring with a single issuer queues
//!   what other threads submit and wakes the context's thread. `watch` becomes a poll request.
//! - **Files** are always ready, so they have operations but no attempts, and `watch` is never called for
//!   them. They need requests with an offset (read at, write at, sync), for which [`Request`] is
//!   non-exhaustive, and a constructor in [`Driver`]. A readiness driver runs these on blocking threads: an
//!   [`InFlight`] is `Send`, and `cancel` does not return one that has begun.
//!
//! # The map
//! | module | contents |
//! | --- | --- |
//! | `source` | [`Source`], a socket of a driver |
//! | `request` | [`Request`] and its buffers |
//! | `in_flight` | [`InFlight`], a submitted operation in the hands of a driver, and [`Finished`] |
//! | `operation`, `life` | the memory of an operation and its stages |
//! | `parked` | [`Parked`], a list of waiting operations |
//! | `watchers`, `later_watchers` | [`Watchers`], a list of wakers |
//! | `lease` | [`Lease`], a buffer that a driver lends |
//! | `spare` | [`SpareBuffer`], memory that need not be initialised |
//! | `address`, `options`, `standard` | addresses, socket options, sockets of the standard library |
//! | `multicast`, `credentials` | groups of receivers, and the process at the other end of a Unix stream |

mod address;
mod credentials;
mod in_flight;
mod later_watchers;
mod lease;
mod life;
mod multicast;
mod operation;
mod options;
mod parked;
mod request;
mod source;
mod spare;
mod standard;
mod watchers;

pub use address::Address;
pub use credentials::PeerCredentials;
pub use in_flight::{Finished, InFlight, OperationId};
pub use lease::{LEASE_BYTES, LEASES_KEPT, Lease};
pub use multicast::MulticastGroup;
pub(crate) use operation::IoOperation;
pub use options::{ListenOptions, SocketOption};
pub use parked::Parked;
pub use request::{Interest, ReadBuffer, Request, RequestMut, WriteBuffer};
pub use source::{Accepted, Source, Submitted};
pub use spare::{SpareBuffer, try_read_into};
pub use standard::StandardSocket;
pub use watchers::{Ticket, Watched, Watchers};

use core::net::IpAddr;
use std::io;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use crate::signal_hub::SignalHub;

/// A kernel, as an I/O context uses it. Only the context's thread calls [`wait`](Driver::wait); every other
/// method may be called from any thread.
pub trait Driver: Send + Sync + 'static {
    /// Returns the current time of the context's clock.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Returns the current time of day, which may jump back and forth.
    fn time_of_day(&self) -> SystemTime {
        SystemTime::now()
    }

    /// Creates a source that listens for streams at this address. Does not block.
    ///
    /// # Errors
    /// Returns the error of the kernel: the address is in use, there are no descriptors left, …
    fn listen(&self, at: &Address, options: &ListenOptions) -> io::Result<Arc<dyn Source>>;

    /// Creates a stream that [`Request::Connect`] can connect to addresses of this kind. Does not block.
    ///
    /// # Errors
    /// Returns the error of the kernel.
    fn stream(&self, like: &Address) -> io::Result<Arc<dyn Source>>;

    /// Creates a source for datagrams at this address. Does not block.
    ///
    /// # Errors
    /// Returns the error of the kernel.
    fn datagrams(&self, at: &Address, options: &ListenOptions) -> io::Result<Arc<dyn Source>>;

    /// Creates two streams that are connected to each other.
    ///
    /// # Errors
    /// Returns the error of the kernel, or [`Unsupported`](io::ErrorKind::Unsupported) if the driver has no
    /// such pairs.
    fn pair(&self) -> io::Result<(Arc<dyn Source>, Arc<dyn Source>)> {
        Err(unsupported("pairs of streams"))
    }

    /// Turns a socket of the standard library into a source, and makes it non-blocking.
    ///
    /// # Errors
    /// Returns the error of the kernel, or [`Unsupported`](io::ErrorKind::Unsupported) if the driver has no
    /// descriptors.
    fn adopt(&self, socket: StandardSocket) -> io::Result<Arc<dyn Source>> {
        let _ = socket;
        Err(unsupported("sockets of the standard library"))
    }

    /// Resolves a host name, for drivers that have hosts of their own. `None` means: ask the system.
    fn lookup(&self, host: &str) -> Option<io::Result<Vec<IpAddr>>> {
        let _ = host;
        None
    }

    /// Returns the signal hub of the program that runs on this driver, if the driver has signals of its own:
    /// a simulated host has. `None` means: use the signals of the process.
    fn signals(&self) -> Option<Arc<SignalHub>> {
        None
    }

    /// Waits until an operation or a watcher is notified, until the clock reaches `until`, or until
    /// [`wake`](Driver::wake). `None` waits without a limit; a time in the past does not wait. Finishes what
    /// can be finished and notifies the waiters with no lock held. May return for no reason.
    ///
    /// # Errors
    /// Fails if the kernel cannot be waited for at all. The context ends the process then.
    fn wait(&self, until: Option<Instant>) -> io::Result<()>;

    /// Handles the events that have occurred, without waiting: like [`wait`](Driver::wait) until now. Called
    /// at regular intervals while the context has work to run. A driver overrides it if that costs less than
    /// a wait.
    ///
    /// # Errors
    /// As [`wait`](Driver::wait).
    fn check(&self) -> io::Result<()> {
        self.wait(Some(self.now()))
    }

    /// Ends the current [`wait`](Driver::wait) or, if there is none, the next one.
    fn wake(&self);

    /// Counts the operations in flight and the registered watchers: the context runs while there are any. If
    /// another thread removes the last one, the current [`wait`](Driver::wait) or the next one ends, so that
    /// the context counts again.
    fn in_flight(&self) -> usize;

    /// Finishes all operations with an error, and all that are submitted later. The sources stay, and their
    /// calls fail.
    fn shut_down(&self);

    /// Returns a descriptor that is readable when [`wait`](Driver::wait) would return at once. Used by
    /// [`IoContext::poll`](crate::IoContext::poll) inside a foreign event loop.
    #[cfg(unix)]
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }

    /// Returns true if the clock jumps to the time that is passed to [`wait`](Driver::wait), as virtual time
    /// does. The context then passes the exact time of the next timer, not a rounded one.
    fn jumps(&self) -> bool {
        false
    }

    /// Returns the maximum number of work items that the context runs between two waits.
    fn runs_per_check(&self) -> u32 {
        convoke_exec::raw::RUNS_PER_CHECK
    }

    /// Chooses which of `queued` work items runs next. Called once per [`runs_per_check`](Driver::runs_per_check) items, if
    /// two or more are queued.
    fn choose(&self, queued: usize) -> usize {
        let _ = queued;
        0
    }
}

/// Creates the error for a call that a driver does not support.
pub fn unsupported(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("this driver has no {what}"))
}

/// Creates the error for operations that are in flight when their driver shuts down, or are submitted
/// afterwards.
pub fn shut_down() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the I/O context has shut down")
}
