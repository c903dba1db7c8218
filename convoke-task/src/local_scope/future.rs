//! `local_scope(async |s| …)`: a body, and children that may borrow from around it, in one task.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use convoke_core::raw::{Frame, FrameArc, budget};
use convoke_core::{BodyOutput, Outcome, Panic, StopReason};
use pin_project_lite::pin_project;

use super::child::Label;
use super::inbox::{Inbox, InboxOwner};
use super::spawn::{AnyChild, LocalScope, LocalScopeNotSend, SendChild};
use crate::pinned::is_there;
use crate::region::{BodyMark, PlainRegion, pass_on_stop};
use crate::together::branch_set::BranchSet;
use crate::together::ended::ended;
use crate::together::wake_set::{Key, WakeFlag};

/// Opens a scope inside the task: runs `body`, which starts children with the [`LocalScope`] it gets, and
/// ends when the body and all children have ended. Children may borrow what outlives the scope. Only the body
/// and the children that were woken are polled.
///
/// The first failure stops the others: an `Err` or a panic of a child, or an `Err`, `None` or a panic of the
/// body (see [`BodyOutput`]). The scope waits for them, and then fails with it. Children may start siblings
/// until the last child has ended, also after a stop request.
///
/// - *Completes with* the output of the body, or with the error of the child that failed first. Stopped, if
///   the body was stopped; or if the scope was asked to stop and a child stopped, because the body's value
///   may rely on what that child did not do. A child that stops by itself does not stop the scope.
/// - *If dropped*, body and children are dropped.
/// - *Runs on* the task that opened the scope, one of them at a time. Use [`scope()`](crate::scope()) for
///   parallel children.
/// - *Panics* with the panic of the body, or of a child, and its name; and outside a task.
///
/// ```
/// use convoke::prelude::*;
///
/// let outcome = block_on(async {
///     let text = String::from("one two three");
///     let mut longest = 0;
///     let words = local_scope(async |s| {
///         let count = s.spawn_future(async { text.split(' ').count() });
///         s.spawn(async { longest = text.split(' ').map(str::len).max().unwrap_or(0) });
///         count.await
///     })
///     .await;
///     (words, longest)
/// });
/// assert_eq!(outcome, Outcome::Value((3, 5)));
/// ```
///
/// What a child borrows must outlive the scope:
///
/// ```compile_fail
/// use convoke::prelude::*;
///
/// async fn wrong() {
///     local_scope(async |s| {
///         let inside = String::from("gone before the child");
///         s.spawn(async { println!("{inside}") });
///     })
///     .await;
/// }
/// ```
#[track_caller]
pub fn local_scope<'env, O, F, Fut>(body: F) -> LocalScopeFuture<SendChild<'env, O>, Fut>
where
    O: 'env,
    F: FnOnce(LocalScope<'env, O>) -> Fut,
    Fut: Future<Output = O>,
{
    open(|inbox| body(LocalScope::new(inbox)), Location::caller())
}

/// Opens a scope inside the task for children that need not be `Send`. The returned future is not `Send`.
/// Otherwise like [`local_scope()`].
///
/// - *Completes with* the output of the body, or with the error of the child that failed first. Stopped, if
///   the body was stopped, or a child because the scope was asked to stop.
/// - *If dropped*, body and children are dropped.
/// - *Runs on* the task that opened the scope, one of them at a time.
/// - *Panics* with the panic of the body, or of a child, and its name; and outside a task.
#[track_caller]
pub fn local_scope_not_send<'env, O, F, Fut>(body: F) -> LocalScopeFuture<AnyChild<'env, O>, Fut>
where
    O: 'env,
    F: FnOnce(LocalScopeNotSend<'env, O>) -> Fut,
    Fut: Future<Output = O>,
{
    open(|inbox| body(LocalScopeNotSend::new(inbox)), Location::caller())
}

pin_project! {
    /// Future of [`local_scope()`] and [`local_scope_not_send`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct LocalScopeFuture<C: ?Sized, F: Future> {
        #[pin]
        body: Option<F>,
        body_flag: FrameArc<WakeFlag>,
        body_waker: Waker,
        rest: Rest<C, F::Output>,
    }
}

/// State of a local scope without its body.
struct Rest<C: ?Sized, O> {
    children: BranchSet<C, Option<Label>>,
    inbox: InboxOwner<C>,
    region: PlainRegion,
    body_mark: BodyMark,
    failure: Option<Failure<O>>,
    /// The value of the body.
    value: Option<O>,
    opened_at: &'static Location<'static>,
    begun: bool,
    taken: bool,
    /// The scope ended as stopped. It may be polled again, by a combinator that still has to finish another
    /// branch.
    stopped: bool,
    /// A child stopped because the scope was asked to stop: the body's value may rely on what that child did
    /// not do.
    cut_short: bool,
    /// An error of the body that came after a stop from outside had cut a child short: it counts as a consequence
    /// of the stop. The scope was stopped, unless a child fails.
    consequence: Option<O>,
    /// Body and children were woken to hear of the stop request.
    told: bool,
}

/// The failure of a child or of the body.
enum Failure<O> {
    Output(O),
    Panic(Panic),
}

/// The key of the body, with an index that no child has.
const BODY: Key = Key { index: usize::MAX, serial: 0 };

/// Creates the future of a local scope.
fn open<C, F>(
    body: impl FnOnce(FrameArc<Inbox<C>>) -> F,
    opened_at: &'static Location<'static>,
) -> LocalScopeFuture<C, F>
where
    C: Future<Output = Option<F::Output>> + ?Sized,
    F: Future,
{
    let mut children = BranchSet::new();
    let body_flag = children.flag_beside(BODY);
    let inbox = InboxOwner(FrameArc::in_task(Inbox::new(children.wake_set().owner())));
    let body = body(inbox.0.clone());
    LocalScopeFuture {
        body: Some(body),
        body_waker: body_flag.clone().into_waker(),
        body_flag,
        rest: Rest {
            children,
            inbox,
            region: PlainRegion::new(),
            body_mark: BodyMark::default(),
            failure: None,
            value: None,
            opened_at,
            begun: false,
            taken: false,
            stopped: false,
            cut_short: false,
            consequence: None,
            told: false,
        },
    }
}

impl<C, F> Future for LocalScopeFuture<C, F>
where
    C: Future<Output = Option<F::Output>> + ?Sized,
    F: Future<Output: BodyOutput>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        let rest = this.rest;
        if rest.stopped {
            return pass_on_stop();
        }
        assert!(!rest.taken, "polled after completion");
        if !rest.begun && !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        rest.begun = true;
        let held = Frame::held_before();
        match Panic::catch(|| rest.region.listen(cx)) {
            Ok(false) => {}
            Ok(true) => rest.wake_all(this.body_flag),
            Err(panic) => rest.fail(Failure::Panic(panic), this.body_flag),
        }
        rest.children.begin_round();
        loop {
            match rest.children.next_within_budget() {
                Some(BODY) => rest.poll_body(&mut this.body, this.body_flag, this.body_waker),
                Some(key) => rest.poll_child(key, this.body_flag),
                None if !rest.children.has_round() && rest.take_in() => {}
                None => break,
            }
        }
        let body_has_ended = !is_there(this.body.as_mut());
        if body_has_ended && rest.children.is_empty() && rest.inbox.0.end() {
            // Some were polled twice, and their first poll may have held the task.
            Frame::forget_holds(held);
            budget::spend();
            return rest.end();
        }
        // The task must not end while body or children are ending: after a stop request, or after the body.
        if rest.region.stop_reason().is_some() || body_has_ended || rest.body_mark.is_held() {
            Frame::hold_current();
        }
        rest.children.end_round(cx);
        if !rest.inbox.0.is_empty() {
            // Another thread has started a child since `take_in`, when no waker was stored.
            cx.waker().wake_by_ref();
        }
        Frame::current(|frame| {
            if let Some(frame) = frame {
                frame.waits_at(rest.opened_at);
            }
        });
        Poll::Pending
    }
}

impl<C, O> Rest<C, O>
where
    C: Future<Output = Option<O>> + ?Sized,
    O: BodyOutput,
{
    /// Polls the body, and stores its end.
    fn poll_body<F: Future<Output = O>>(
        &mut self,
        body: &mut Pin<&mut Option<F>>,
        flag: &WakeFlag,
        waker: &Waker,
    ) {
        let Some(future) = body.as_mut().as_pin_mut() else { return };
        flag.clear();
        let polled = Panic::catch(|| self.region.poll_one(future, &self.body_mark, waker));
        match ended(polled, &self.region, || body.set(None)) {
            None => {}
            Some(Outcome::Value(value)) if value.is_failure() => {
                let from_outside = !matches!(self.region.stop_reason(), None | Some(StopReason::Sibling));
                if self.failure.is_none() && self.cut_short && from_outside {
                    self.consequence = Some(value);
                } else {
                    self.fail(Failure::Output(value), flag);
                }
            }
            Some(Outcome::Value(value)) => self.value = Some(value),
            Some(Outcome::Error(never)) => never.absurd(),
            Some(Outcome::Panicked(panic)) => self.fail(Failure::Panic(panic), flag),
            Some(Outcome::Stopped) => self.stop(flag),
        }
    }

    /// Polls a child, and stores its failure or stop.
    fn poll_child(&mut self, key: Key, body: &WakeFlag) {
        match self.children.poll(key, &self.region) {
            None | Some((Outcome::Value(None), _)) => {}
            Some((Outcome::Stopped, _)) => self.cut_short |= self.region.stop_reason().is_some(),
            Some((Outcome::Value(Some(output)), _)) => self.fail(Failure::Output(output), body),
            Some((Outcome::Error(never), _)) => never.absurd(),
            Some((Outcome::Panicked(panic), label)) => {
                let panic = match label {
                    Some(label) => label.of_panic(panic),
                    None => panic,
                };
                self.fail(Failure::Panic(panic), body);
            }
        }
    }

    /// Moves children from the inbox to the set. Returns false if there were none.
    fn take_in(&mut self) -> bool {
        let started = self.inbox.0.take();
        let any = !started.is_empty();
        for child in started {
            self.children.insert(child.future, child.label);
        }
        any
    }

    /// Stores the first failure, and asks the others to stop.
    #[cold]
    fn fail(&mut self, failure: Failure<O>, body: &WakeFlag) {
        let second = match self.failure {
            None => {
                self.failure = Some(failure);
                None
            }
            Some(_) => Some(failure),
        };
        // The panic hook has reported a second panic. A second error is dropped: a scope has one outcome.
        let _ = Panic::catch(|| drop(second));
        self.stop(body);
    }

    /// Asks body and children to stop.
    fn stop(&mut self, body: &WakeFlag) {
        if let Err(panic) = Panic::catch(|| self.region.request_stop_after_around(StopReason::Sibling))
            && self.failure.is_none()
        {
            self.failure = Some(Failure::Panic(panic));
        }
        // Once: otherwise each later failure would visit all children. A child that is started later sees the
        // request at its first poll.
        if !self.told {
            self.wake_all(body);
        }
    }

    /// Wakes body and children, so that they hear of the stop request.
    fn wake_all(&mut self, body: &WakeFlag) {
        self.told = true;
        body.set();
        self.children.wake_all();
    }

    /// Completes with the first failure, the body's value, or as stopped.
    fn end(&mut self) -> Poll<O> {
        self.taken = true;
        match (self.failure.take(), self.value.take()) {
            (Some(Failure::Panic(panic)), value) => {
                let _ = Panic::catch(|| drop(value));
                panic.resume()
            }
            (Some(Failure::Output(output)), _) => Poll::Ready(output),
            (None, Some(value)) if !self.cut_short => Poll::Ready(value),
            (None, value) => {
                self.stopped = true;
                match Panic::catch(|| drop((self.consequence.take(), value))) {
                    Ok(()) => pass_on_stop(),
                    Err(panic) => panic.resume(),
                }
            }
        }
    }
}

impl<C: ?Sized, F: Future> fmt::Debug for LocalScopeFuture<C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalScopeFuture")
            .field("opened at", &self.rest.opened_at)
            .field("children", &self.rest.children)
            .finish_non_exhaustive()
    }
}
