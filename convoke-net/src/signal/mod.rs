//! Signals: a task waits for SIGHUP as it waits for a socket. [`signals`] subscribes through a service of the
//! task's context.
//!
//! A signal takes this way: the system calls a handler, a thread of the process takes it from there
//! (`process`) and calls the hub, which puts it into the inboxes of all subscriptions. The thread starts with
//! the first subscription in the process. A simulated host has a hub of its own and needs neither handler nor
//! thread.
//!
//! | module | contents |
//! | --- | --- |
//! | `service` | [`SignalService`], which finds the hub of the process or of a simulated host |
//! | `process` | the signals of the process, on a thread of their own |

mod process;
mod service;

pub use convoke_io::signal_hub::{Signal, SignalHub, SignalSource, Signals};
pub use service::SignalService;

use core::future::Future;
use std::io;

use convoke_io::context::use_service;

/// Subscribes to these signals until the returned value is dropped. Each signal that arrives is stored until
/// it is taken.
///
/// Several tasks may subscribe to the same signal; each one gets it, and so does `#[convoke::main]` for
/// signals that stop the program.
///
/// # The default action of a signal
/// Most signals end the process by default. The first subscription to a signal disables this default action
/// until the process ends. It stays disabled after the last subscription is dropped: a signal that arrives
/// then does nothing. Otherwise a signal between two subscriptions would end the program; and the handler of
/// a signal is shared with other libraries, so it cannot simply be removed.
///
/// So a program that has once waited for [`ctrl_c`] is no longer ended by Ctrl-C, except under
/// `#[convoke::main]`, which handles SIGINT and SIGTERM while it runs. To end the program on a signal, keep
/// the subscription and end when it arrives. Child processes handle their signals as usual.
///
/// On a simulated host these are the signals of the host: those that the simulation or the program raises
/// there.
///
/// # Errors
/// Fails if there is no I/O context; if a signal cannot be handled, like SIGKILL, or does not exist on this
/// system; if none is named; if the system has no descriptors or threads left.
///
/// ```
/// # #[cfg(unix)]
/// # {
/// use convoke::signal::{Signal, raise, signals};
///
/// let context = convoke::driver::io_context().unwrap();
/// let outcome = context.block_on(async {
///     let mut reloads = signals([Signal::HANGUP, Signal::USER_1])?;
///     raise(Signal::HANGUP)?; // Like `kill -HUP` from another process.
///     std::io::Result::Ok(reloads.next().await)
/// });
/// assert_eq!(outcome.unwrap().unwrap(), Signal::HANGUP);
/// # }
/// ```
#[doc(alias = "SignalKind")]
pub fn signals(of: impl IntoIterator<Item = Signal>) -> io::Result<Signals> {
    use_service::<SignalService>()?.subscribe(of)
}

/// Waits for Ctrl-C, or for a SIGINT from another process. Signals count from the call on, even before the
/// future is polled.
///
/// A program that merely ends on Ctrl-C does not need it: `#[convoke::main]` stops the program. After this
/// call Ctrl-C does not end the process any more: see [`signals`](signals#the-default-action-of-a-signal).
///
/// - *Completes with* `()` when the signal has arrived; an error of [`signals`]; or stopped.
/// - *If dropped*, it stops waiting.
/// - *Runs on* the current task.
///
/// ```
/// use convoke::signal::{Signal, ctrl_c, raise};
///
/// let context = convoke::driver::io_context().unwrap();
/// let outcome = context.block_on(async {
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

/// Raises a signal in this process, like `kill` from another one; on a simulated host, there only. All its
/// subscribers get it. If there was never a subscription, the default action of the signal happens: most end
/// the process. If all subscriptions have ended, nothing happens.
///
/// # Errors
/// Fails if there is no I/O context, or no such signal.
pub fn raise(signal: Signal) -> io::Result<()> {
    use_service::<SignalService>()?.raise(signal)
}
