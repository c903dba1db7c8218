//! The future of `using`, `ensure` and `cleanups`: runs the body, then the clean-up, and combines their
//! outcomes.
//!
//! Each of its types is a parameter of its own, and none is a projection of another: with projections the
//! compiler (1.95) does not see that it is `Send` if something in it borrows.

use core::cell::Cell;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use convoke_core::raw::{
    DropOutOfLine, Frame, LastUse, OutOfLine, Polled, ReasonCode, UnderWay, budget, outside_a_task, with_room,
};
use convoke_core::{BodyOutput, CleanupFailure, Outcome, Panic, StopReason};
use pin_project_lite::pin_project;

use super::Exit;
use super::cleanup_output::{CleanupError, CleanupOutput};
use super::closing::{Closed, Closing};
use super::grace::Grace;
use super::lent::Lender;
use super::problem::{CleanupId, ProblemKind};

/// The resource while the body runs: in the future, or lent to the body.
pub(super) enum Held<R> {
    Here(Option<R>),
    Lent(Lender<R>),
}

impl<R> Held<R> {
    fn take(&mut self) -> Option<R> {
        match self {
            Self::Here(resource) => resource.take(),
            Self::Lent(lender) => lender.take(),
        }
    }
}

pin_project! {
    /// Future of [`using`](super::using), [`ensure`](super::ensure) and [`cleanups`](super::cleanups). `R` is
    /// the resource, `F` the body, and `C` the clean-up.
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Using<R, F: Future, C> {
        #[pin]
        stage: OutOfLine<Stage<F, C>>,
        held: Held<R>,
        close: fn(R, Exit) -> C,
        // The outcome of the body, while the clean-up runs.
        body_ended: OutOfLine<Option<Outcome<F::Output>>>,
        grace: Option<Duration>,
        whose: CleanupId,
        // Says if a drop before the end is reported.
        reports: Reports,
        begun: bool,
        // The reason for which work stopped that the body awaited, if it is not that of the task.
        cause: Option<ReasonCode>,
        under_way: UnderWay,
    }

    impl<R, F: Future, C> PinnedDrop for Using<R, F, C> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            if *this.reports == Reports::Now {
                match this.stage.as_pin().project() {
                    StageNow::Body { .. } => this.whose.report(ProblemKind::Skipped),
                    StageNow::Closing { .. } => this.whose.report(ProblemKind::CutShort),
                    StageNow::Ended { .. } => {}
                }
            }
        }
    }
}

pin_project! {
    #[project = StageNow]
    enum Stage<F, C> {
        Body { #[pin] body: F, stopped: Cell<bool> },
        Closing { #[pin] closing: Closing<C> },
        Ended { stopped: bool },
    }
}

impl<F, C> DropOutOfLine for Stage<F, C> {
    #[inline(never)]
    fn drop_out_of_line(stage: LastUse<'_, Self>) {
        // The body, or the clean-up, may contain a future like this one, and so on.
        with_room(|| stage.drop_here());
    }
}

/// When a drop before the end is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reports {
    /// From the first poll on: nothing has begun before.
    OncePolled,
    /// Report: there is something to clean up.
    Now,
    /// The resource reports it itself.
    Elsewhere,
}

impl<R, F: Future, C> Using<R, F, C> {
    pub(super) fn new(
        body: F,
        held: Held<R>,
        close: fn(R, Exit) -> C,
        whose: CleanupId,
        reports: Reports,
    ) -> Self {
        Self {
            stage: OutOfLine::new(Stage::Body { body, stopped: Cell::new(false) }),
            held,
            close,
            body_ended: OutOfLine::new(None),
            grace: None,
            whose,
            reports,
            begun: false,
            cause: None,
            under_way: UnderWay::new(),
        }
    }

    /// Sets the grace period: the time that the clean-up may take. After that it is asked to stop, and still
    /// awaited; if it stops, the [hook](super::set_cleanup_hook) hears of it.
    ///
    /// The default is the value of [`GRACE`](super::GRACE) in the environment, or else [30
    /// seconds](super::DEFAULT_GRACE). `Duration::MAX` means no limit.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }
}

impl<R, F, C> Future for Using<R, F, C>
where
    F: Future<Output: BodyOutput>,
    C: Future<Output: CleanupOutput>,
    CleanupError<C>: CleanupFailure<F::Output>,
{
    type Output = <CleanupError<C> as CleanupFailure<F::Output>>::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.as_mut().project();
        if !core::mem::replace(this.begun, true) && !budget::may_proceed(cx) {
            *this.begun = false;
            return Poll::Pending;
        }
        if let StageNow::Body { body, stopped } = this.stage.as_pin().project() {
            let ended = poll_body(body, stopped, cx);
            let this = self.as_mut().project();
            if *this.reports == Reports::OncePolled {
                *this.reports = Reports::Now;
            }
            let Some(Ended { left, cause, asked }) = ended else { return Poll::Pending };
            *this.cause = cause.map(ReasonCode::of);
            let reason = cause.or(asked);
            if let Some(closed) = self.as_mut().begin_to_close(left, reason) {
                return self.end(closed);
            }
        }
        let this = self.as_mut().project();
        match this.stage.as_pin().project() {
            StageNow::Closing { closing } => match closing.poll(cx) {
                Poll::Pending => {
                    this.under_way.hold(cx);
                    Poll::Pending
                }
                Poll::Ready(closed) => self.end(closed),
            },
            StageNow::Ended { stopped: true } => stopped(*this.cause),
            StageNow::Body { .. } | StageNow::Ended { stopped: false } => panic!("polled after completion"),
        }
    }
}

/// The end of a body.
struct Ended<T> {
    left: Outcome<T>,
    /// The reason for which work stopped that the body awaited.
    cause: Option<StopReason>,
    /// The reason of a stop request to the task.
    asked: Option<StopReason>,
}

/// Polls the body, and returns how it has ended, if it has.
fn poll_body<F: Future>(
    body: Pin<&mut F>,
    stopped: &Cell<bool>,
    cx: &mut Context<'_>,
) -> Option<Ended<F::Output>> {
    Frame::current(|frame| {
        let Some(outer) = frame else { outside_a_task("`using`") };
        let inside = outer.same(stopped);
        let left = match Panic::catch(|| inside.poll(body, cx)) {
            Ok(Polled::Pending) => return None,
            Ok(Polled::Ready(value)) => Outcome::Value(value),
            Ok(Polled::Stopped) => Outcome::Stopped,
            Err(panic) => Outcome::Panicked(panic),
        };
        // Work that the body awaited may have stopped for a reason of its own.
        let cause = if matches!(left, Outcome::Stopped) { inside.take_cause() } else { None };
        outer.take_cause();
        Some(Ended { left, cause, asked: outer.stop_reason() })
    })
}

/// Stops the task, because the body was stopped.
fn stopped<T>(cause: Option<ReasonCode>) -> Poll<T> {
    Frame::current(|frame| match frame {
        Some(frame) => match cause {
            Some(cause) => frame.stop_with(Some(cause.reason())),
            None => frame.set_stopped(),
        },
        None => outside_a_task("`using`"),
    });
    Poll::Pending
}

impl<R, F, C> Using<R, F, C>
where
    F: Future<Output: BodyOutput>,
    C: Future<Output: CleanupOutput>,
    CleanupError<C>: CleanupFailure<F::Output>,
{
    /// Drops the frame of the body, which has ended, takes back the resource, and starts the clean-up.
    /// Returns the end of the clean-up if it could not be started.
    fn begin_to_close(
        self: Pin<&mut Self>,
        mut left: Outcome<F::Output>,
        reason: Option<StopReason>,
    ) -> Option<Closed<CleanupError<C>>> {
        let mut this = self.project();
        if let Err(panic) = Panic::catch(|| this.stage.as_mut().as_pin().set(Stage::Ended { stopped: false }))
        {
            left = left.or_panic(panic);
        }
        let exit = match &left {
            Outcome::Value(value) if value.is_failure() => Exit::Error,
            Outcome::Value(_) => Exit::Value,
            Outcome::Error(never) => never.absurd(),
            Outcome::Stopped => Exit::Stopped(reason),
            Outcome::Panicked(panic) => Exit::Panicked(panic.message().to_owned()),
        };
        **this.body_ended = Some(left);
        let Some(resource) = this.held.take() else {
            this.whose.report(ProblemKind::NotGivenBack);
            return Some(Closed::Well);
        };
        // The clean-up need not be an `async fn`: the call may panic before it returns a future.
        match Panic::catch(|| (this.close)(resource, exit)) {
            Ok(clean_up) => {
                let grace = Grace::new(*this.grace);
                this.stage.as_pin().set(Stage::Closing { closing: Closing::shielded(clean_up, grace) });
                None
            }
            Err(panic) => Some(Closed::Panicked(panic)),
        }
    }

    /// Combines the outcomes of body and clean-up. The outcome of the body counts for more, except that a
    /// panic of the clean-up replaces a value or a stop. What is lost of the clean-up is reported.
    fn end(
        self: Pin<&mut Self>,
        closed: Closed<CleanupError<C>>,
    ) -> Poll<<CleanupError<C> as CleanupFailure<F::Output>>::Output> {
        let this = self.project();
        let Some(left) = this.body_ended.take() else { panic!("polled after completion") };
        budget::spend();
        this.under_way.end();
        this.stage.as_pin().set(Stage::Ended { stopped: matches!(left, Outcome::Stopped) });
        let closed = match (&left, closed) {
            (Outcome::Value(value), Closed::Panicked(panic)) if !value.is_failure() => {
                // A panic of the value's destructor is dropped: one panic goes on.
                let _ = Panic::catch(|| drop(left));
                panic.resume();
            }
            (Outcome::Stopped, Closed::Panicked(panic)) => panic.resume(),
            (Outcome::Value(_), Closed::Failed(error)) => {
                let Outcome::Value(value) = left else { unreachable!() };
                let (output, lost) = error.fail(value);
                if let Some(error) = lost {
                    this.whose.report(ProblemKind::Failed(&error));
                }
                return Poll::Ready(output);
            }
            (_, closed) => closed,
        };
        if let Some(problem) = closed.problem() {
            this.whose.report(problem);
        }
        match left {
            Outcome::Value(value) => Poll::Ready(CleanupError::<C>::go_on(value)),
            Outcome::Error(never) => never.absurd(),
            Outcome::Stopped => stopped(*this.cause),
            Outcome::Panicked(panic) => panic.resume(),
        }
    }
}

impl<R, F: Future, C> fmt::Debug for Using<R, F, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &*self.stage {
            Stage::Body { .. } => "body",
            Stage::Closing { .. } => "closing",
            Stage::Ended { .. } => "ended",
        };
        f.debug_struct("Using").field("stage", &stage).field("whose", &self.whose).finish_non_exhaustive()
    }
}
