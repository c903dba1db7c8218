//! The portable driver of Convoke, for kernels that report readiness: epoll, kqueue and IOCP. The kernel says
//! when a socket is ready, and the driver then performs the operation.
//!
//! # How the parts work together
//! A source (`source`) wraps a socket and its `SourceState`. An attempt checks `readiness`, makes the system call,
//! and reports a failure back to `readiness`. A task or an operation that would block joins a waiting list in
//! `state`, under the lock of that list and only if `readiness` still says "not ready". Any thread may do all
//! of that.
//!
//! Only the context's thread calls `PollDriver::wait`. It takes events from the `poller`, finds the source of
//! each one in the `registry`, records the event in `readiness` and then takes the locks of the waiting
//! lists: it performs parked operations and collects wakers. It notifies after it has released every lock.
//! Other threads end the wait through `wake_flag`.
//!
//! | module | contents |
//! | --- | --- |
//! | `driver` | [`PollDriver`]: creates sources, waits for events, shuts down |
//! | `source` | the `Source` implementation of a socket |
//! | `state` | the part of a source that the driver uses: socket, readiness, waiting lists |
//! | `attempts` | calls that are tried at once |
//! | `readiness` | the state machine of a source: one word, no lock |
//! | `registry` | finds the source of an event by its key |
//! | `wake_flag` | merges several wake-ups of the driver into one |
//! | `count` | the number of waiters, and the wake-up when it reaches zero |
//! | `poller` | the kernel's interface: `epoll` on Linux, `portable` elsewhere; `adaptive_spin` tunes polling before a sleep |
//! | `socket` | a socket with its cached descriptor |
//! | `system_calls` | the system calls that no other crate makes as they are needed here |
//! | `sockets`, `addresses`, `options`, `calls`, `credentials` | how sockets are created, named, configured and used, and which process is at their other end |
//!
//! Programs use the facade crate `convoke`, which chooses a driver.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod addresses;
mod calls;
#[doc(hidden)]
pub mod count;
mod credentials;
mod driver;
mod options;
mod poller;
#[doc(hidden)]
pub mod readiness;
#[doc(hidden)]
pub mod registry;
mod socket;
mod sockets;
#[cfg(unix)]
mod system_calls;
#[doc(hidden)]
pub mod wake_flag;

pub use driver::{PollDriver, SPIN};
pub use poller::EVENTS_AT_ONCE;
