//! Signals: a task waits for SIGHUP as it waits for a socket. Each context has a service for that; who asks it subscribes.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `service.rs` | [`SignalService`]: leads to the hub of the process, or to that of a simulated host |
//! | `process/` | the signals of the process, on a thread of their own |

mod process;
mod service;

pub use convoke_io::signal_hub::{Signal, SignalHub, SignalSource, Signals};
pub use service::SignalService;

use core::future::Future;
use std::io;

use convoke_io::context::use_service;

/// Hears of these signals from now on, until what is returned is dropped: each that comes is kept until it is asked for.
///
/// Several may hear of the same signal; each is told, and so is `#[convoke::main]` of those that it stops for.
///
/// # What a signal does otherwise
/// From the first time that somebody wants to hear of a signal until the process ends, the system does not do what it would do
/// otherwise, which for most is to end the process. It does not when the last subscription is gone, either: a signal that comes
/// then does nothing (who subscribes in the same moment may still hear of it). Else one that comes between two
/// subscriptions would end the program; and how a process takes a signal is not ours alone to say: other libraries may have asked, too.
///
/// So a program that has once waited for [`ctrl_c`] is not ended by Ctrl-C any more, except under `#[convoke::main]`, which hears of
/// SIGINT and SIGTERM for as long as it runs. If a signal is to end the program keep the subscription, and end it when it comes. Programs
/// that are started by this one take their signals as they always do.
///
/// On a simulated host they are the host's: those that the simulation raises there, and that the program raises itself.
///
/// # Errors
/// If there is no I/O context here; if a signal cannot be heard of, as SIGKILL cannot, or not on this system; if none is
/// named; if the system has no descriptors or threads left.
///
/// ```
/// # #[cfg(unix)]
/// # {
/// use convoke::signal::{Signal, raise, signals};
///
/// let context = convoke::driver::io_context().unwrap();
/// let outcome = context.run_until(async {
///     let mut reloads = signals([Signal::HANGUP, Signal::USER_1])?;
///     raise(Signal::HANGUP)?; // As `kill -HUP` from another process.
///     std::io::Result::Ok(reloads.next().await)
/// });
/// assert_eq!(outcome.unwrap().unwrap(), Signal::HANGUP);
/// # }
/// ```
#[doc(alias = "SignalKind")]
pub fn signals(of: impl IntoIterator<Item = Signal>) -> io::Result<Signals> {
    use_service::<SignalService>()?.subscribe(of)
}

/// Waits for Ctrl-C, or a SIGINT from elsewhere, that comes from when this is called on: also before it is awaited.
///
/// A program that should merely end need not: `#[convoke::main]` asks it to stop. One that has waited for this is not ended by
/// Ctrl-C any more: see [`signals`](signals#what-a-signal-does-otherwise).
///
/// - *Completes with* nothing in particular when it came; with the errors of [`signals`]; stopped.
/// - *If dropped*, it does not wait any more.
/// - *Runs on* the task.
///
/// ```
/// use convoke::signal::{Signal, ctrl_c, raise};
///
/// let context = convoke::driver::io_context().unwrap();
/// let outcome = context.run_until(async {
///     let pressed = ctrl_c();
///     raise(Signal::INTERRUPT)?;
///     pressed.await
/// });
/// outcome.unwrap().unwrap();
/// ```
pub fn ctrl_c() -> impl Future<Output = io::Result<()>> + Send {
    let subscribed = signals([Signal::INTERRUPT]);
    async move {
        subscribed?.next().await;
        Ok(())
    }
}

/// Raises a signal in this process, as `kill` would from another; on a simulated host, there alone. All who want to hear of it
/// do. If nobody has ever wanted to, the system does what it does with that signal: most end the process. If nobody wants to any
/// more, nothing happens.
///
/// # Errors
/// If there is no I/O context here, or no such signal.
pub fn raise(signal: Signal) -> io::Result<()> {
    use_service::<SignalService>()?.raise(signal)
}
