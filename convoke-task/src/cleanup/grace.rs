//! The grace period: the time that a clean-up may take before it is asked to stop.

use core::future::IntoFuture;
use core::pin::Pin;
use core::task::Context;
use std::time::{Duration, Instant};

use convoke_core::env::Local;
use convoke_core::raw::{DropOutOfLine, Frame, LastUse, Polled};
use convoke_core::{Executor, Panic, StopReason};

use crate::framed::{Framed, frame};
use crate::region::Region;
use convoke_exec::time::{Sleeping, sleep_until};

/// Grace period of a clean-up that has no other.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// Key of the grace period in the environment. It holds for the clean-ups below. `Duration::MAX` means no
/// limit.
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::cleanup::GRACE;
/// use convoke::env::Changes;
/// use convoke::executor::block_on_with;
///
/// let short = Changes::new().local(&GRACE, Duration::from_millis(1));
/// let outcome = block_on_with(short, async {
///     // A clean-up that would take an hour: it is stopped, and reported on stderr.
///     ensure(async |_| sleep(Duration::from_secs(3600)).await, async { 7 }).await
/// });
/// assert_eq!(outcome, Outcome::Value(7));
/// ```
pub static GRACE: Local<Duration> = Local::inherited("clean-up grace period");

/// Stop reason of a clean-up whose grace period is over.
pub const GRACE_OVER: StopReason = StopReason::Named("grace period over");

/// The grace period of a running clean-up.
#[derive(Debug)]
pub(super) enum Grace {
    /// It ends then. The timer is started when the clean-up waits for the first time: most never do.
    Until(Instant),
    Waiting(Framed<Sleeping>),
    /// It is over, or has no limit.
    None,
}

impl DropOutOfLine for Grace {
    #[inline(never)]
    fn drop_out_of_line(grace: LastUse<'_, Self>) {
        grace.drop_here();
    }

    #[inline]
    fn has_something_to_drop(&mut self) -> bool {
        matches!(self, Self::Waiting(_))
    }
}

impl Grace {
    /// Starts a grace period now, by the clock of the executor. Its length is `set`, or that of the
    /// environment, or the default.
    pub(super) fn new(set: Option<Duration>) -> Self {
        Frame::current(|frame| {
            let env = frame.map(|frame| frame.operation_owner().env());
            let around = || frame.and_then(|frame| frame.local(&GRACE).copied());
            let grace = set.or_else(around).unwrap_or(DEFAULT_GRACE);
            // An executor without timers has the clock of the process. The timer thread is not started for
            // this alone.
            let clock = || env.and_then(|env| env.executor().timers()).map(|timers| timers.now());
            // The executor may be foreign code that panics.
            let now = Panic::catch(clock).ok().flatten().unwrap_or_else(Instant::now);
            now.checked_add(grace).map_or(Self::None, Self::Until)
        })
    }

    /// Returns the instant at which it is over.
    pub(super) fn deadline(&self) -> Option<Instant> {
        if let Self::Until(at) = self { Some(*at) } else { None }
    }

    /// Polls the timer in the region of the clean-up, which waits. If the time is over, asks the region to
    /// stop, and returns true: the clean-up is to be polled again.
    pub(super) fn is_over(&mut self, region: &mut Region, cx: &mut Context<'_>) -> bool {
        if let Self::Until(at) = self {
            *self = Self::Waiting(frame(sleep_until(*at).into_future()));
        }
        let Self::Waiting(sleep) = self else { return false };
        let reason = match Panic::catch(|| region.poll(Pin::new(sleep), cx)) {
            Ok(Polled::Pending) => return false,
            Ok(Polled::Ready(())) => Some(GRACE_OVER),
            // The timers were shut down.
            Ok(Polled::Stopped) => Some(StopReason::Shutdown),
            // There are no timers. The clean-up runs without a limit.
            Err(_) => None,
        };
        *self = Self::None;
        if let Some(reason) = reason {
            region.request_stop(reason);
        }
        reason.is_some()
    }
}
