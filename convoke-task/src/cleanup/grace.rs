//! The grace period: how long a clean-up may take before it is asked to stop.

use core::future::IntoFuture;
use core::pin::Pin;
use core::task::Context;
use std::time::{Duration, Instant};

use convoke_core::env::Local;
use convoke_core::raw::{Frame, Polled};
use convoke_core::{Executor, Panic, StopReason};

use crate::framed::{Framed, frame};
use crate::region::Region;
use convoke_exec::time::{Sleeping, sleep_until};

/// How long a clean-up may take if nobody has said otherwise.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// The key in the environment for how long clean-ups below may take. `Duration::MAX` is for ever.
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::sender::prelude::*;
/// use convoke::cleanup::GRACE;
/// use convoke::env::Changes;
///
/// let short = Changes::new().local(&GRACE, Duration::from_millis(1));
/// let outcome = sync_wait_with(short, task(async {
///     // A clean-up that would never end; the one line about it is written to the error stream.
///     ensure(async |_| never::<()>().await, async { 7 }).await
/// }));
/// assert_eq!(outcome, Outcome::Value(7));
/// ```
pub static GRACE: Local<Duration> = Local::inherited("clean-up grace period");

/// The reason that a clean-up is given when its time is over.
pub const GRACE_OVER: StopReason = StopReason::Named("grace period over");

/// The time that a clean-up has.
#[derive(Debug)]
pub(super) enum Grace {
    /// Until then. Nobody waits for it before the clean-up does: most have nothing to wait for.
    Until(Instant),
    Waiting(Framed<Sleeping>),
    /// Over, or for ever.
    None,
}

impl Grace {
    /// From now on, by the clock of the executor, for as long as was said here, or around.
    pub(super) fn new(said: Option<Duration>) -> Self {
        Frame::current(|frame| {
            let env = frame.map(|frame| frame.operation_owner().env());
            let around = || env.and_then(|env| env.local(&GRACE).copied());
            let grace = said.or_else(around).unwrap_or(DEFAULT_GRACE);
            // An executor without timers has everybody's clock; the thread that serves it is not started for this alone.
            let clock = || env.and_then(|env| env.executor().timers()).map(|timers| timers.now());
            // It may be an executor of the program's.
            let now = Panic::catch(clock).ok().flatten().unwrap_or_else(Instant::now);
            now.checked_add(grace).map_or(Self::None, Self::Until)
        })
    }

    /// When it is over.
    pub(super) fn deadline(&self) -> Option<Instant> {
        if let Self::Until(at) = self { Some(*at) } else { None }
    }

    /// The clean-up waits: so does this, in its region, which is shielded. If the time is over the region is asked to
    /// stop, and the clean-up is to be polled again: true.
    pub(super) fn is_over(&mut self, region: &mut Region, cx: &mut Context<'_>) -> bool {
        if let Self::Until(at) = self {
            *self = Self::Waiting(frame(sleep_until(*at).into_future()));
        }
        let Self::Waiting(sleep) = self else { return false };
        let reason = match Panic::catch(|| region.poll(Pin::new(sleep), cx)) {
            Ok(Polled::Pending) => return false,
            Ok(Polled::Ready(())) => Some(GRACE_OVER),
            // There will be no time any more.
            Ok(Polled::Stopped) => Some(StopReason::Shutdown),
            // There are no timers. A clean-up is more important than its limit.
            Err(_) => None,
        };
        *self = Self::None;
        if let Some(reason) = reason {
            region.request_stop(reason);
        }
        reason.is_some()
    }
}
