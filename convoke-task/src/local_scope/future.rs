//! `local_scope(async |s| …)`: a body, and children that borrow from around it, in one task.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;

use convoke_core::raw::Frame;
use convoke_core::{BodyOutput, Outcome, Panic, StopReason};
use pin_project_lite::pin_project;

use super::child::Label;
use super::inbox::{Door, Inbox};
use super::spawn::{AnyChild, LocalScope, LocalScopeNotSend, SendChild};
use crate::region::{BodyMark, Region, pass_on_stop};
use crate::together::branch_set::BranchSet;
use crate::together::ended::ended;
use crate::together::wake_set::{Key, WakeFlag};

/// Opens a scope inside the task: runs `body`, which starts children with the [`LocalScope`] it is given, and ends when the body
/// and all children have ended. Children may borrow whatever outlives the scope. The body is a child like the others; only
/// those are polled that were woken.
///
/// The first child to fail, with an `Err` or a panic, stops the others; they come home, and its failure is the scope's.
/// Children may start others until the last has ended, also when they are asked to stop.
///
/// - *Completes with* what the body returns, or with the error of the child that failed first. Stopped, if the body was,
///   or if the scope was asked to stop and a child has stopped for it: a value would count on what that child did not do. A
///   child that stops by itself is merely gone.
/// - *If dropped*, body and children are dropped.
/// - *Runs on* the task that opened the scope, all in turn. For parallel children there is [`scope()`](crate::scope()).
/// - *Panics* with the panic of a child, and its name; and outside a task.
///
/// ```
/// use convoke::prelude::*;
///
/// let outcome = sync_wait(task(async {
///     let text = String::from("one two three");
///     let mut longest = 0;
///     let words = local_scope(async |s| {
///         let count = s.spawn_future(async { text.split(' ').count() });
///         s.spawn(async { longest = text.split(' ').map(str::len).max().unwrap_or(0) });
///         count.await
///     })
///     .await;
///     (words, longest)
/// }));
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

/// As [`local_scope()`], for children that are not `Send`. Nor is the scope, then.
///
/// - *Completes with* what the body returns, or with the error of the child that failed first. Stopped, if the body was,
///   or a child that was asked to.
/// - *If dropped*, body and children are dropped.
/// - *Runs on* the task that opened the scope, all in turn.
/// - *Panics* with the panic of a child, and its name; and outside a task.
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
    /// See [`local_scope()`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct LocalScopeFuture<C: ?Sized, F: Future> {
        #[pin]
        body: Option<F>,
        body_bell: Arc<WakeFlag>,
        body_waker: Waker,
        rest: Rest<C, F::Output>,
    }
}

/// All but the body.
struct Rest<C: ?Sized, O> {
    children: BranchSet<C, Option<Label>>,
    inbox: Door<C>,
    region: Region,
    body_mark: BodyMark,
    failure: Option<Failure<O>>,
    /// What the body returned.
    value: Option<O>,
    place: &'static Location<'static>,
    taken: bool,
    /// It has ended by the stopped door, and may be polled again, beside something that must not be dropped yet.
    stopped: bool,
    /// A child was stopped after the scope was asked to: then the body's value is not what it says.
    cut_short: bool,
    /// Body and children were woken, to hear of the stop.
    told: bool,
}

enum Failure<O> {
    Output(O),
    Panic(Panic),
}

/// The key of the body, in a place where no child is.
const BODY: Key = Key { place: usize::MAX, serial: 0 };

fn open<C, F>(
    body: impl FnOnce(Arc<Inbox<C>>) -> F,
    place: &'static Location<'static>,
) -> LocalScopeFuture<C, F>
where
    C: Future<Output = Option<F::Output>> + ?Sized,
    F: Future,
{
    let mut children = BranchSet::new();
    let body_bell = children.bell_beside(BODY);
    let inbox = Door(Arc::new(Inbox::new(children.bells().owner())));
    let body = body(inbox.0.clone());
    LocalScopeFuture {
        body: Some(body),
        body_waker: Waker::from(body_bell.clone()),
        body_bell,
        rest: Rest {
            children,
            inbox,
            region: Region::new(),
            body_mark: BodyMark::default(),
            failure: None,
            value: None,
            place,
            taken: false,
            stopped: false,
            cut_short: false,
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
        assert!(!rest.taken, "polled after it has ended");
        let held = Frame::held_before();
        match Panic::catch(|| rest.region.listen(cx)) {
            Ok(false) => {}
            Ok(true) => rest.ring_all(this.body_bell),
            Err(panic) => rest.fail(Failure::Panic(panic), this.body_bell),
        }
        rest.children.begin_round();
        loop {
            match rest.children.next() {
                Some(BODY) => rest.poll_body(&mut this.body, this.body_bell, this.body_waker),
                Some(key) => rest.poll_child(key, this.body_bell),
                None if rest.take_in() => {}
                None => break,
            }
        }
        if this.body.is_none() && rest.children.is_empty() && rest.inbox.0.end() {
            // Some were polled twice, and have held the task for the first time of it.
            Frame::forget_holds(held);
            return rest.end();
        }
        // Those that were asked to stop are on their way home, and without a body the children are.
        if rest.region.stop_reason().is_some() || this.body.is_none() || rest.body_mark.is_held() {
            Frame::hold_current();
        }
        rest.children.end_round(cx.waker());
        if !rest.inbox.0.is_empty() {
            // Started by another thread since we looked, before it could know whom to wake.
            cx.waker().wake_by_ref();
        }
        Frame::current(|frame| {
            if let Some(frame) = frame {
                frame.waits_at(rest.place);
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
    fn poll_body<F: Future<Output = O>>(
        &mut self,
        body: &mut Pin<&mut Option<F>>,
        bell: &WakeFlag,
        waker: &Waker,
    ) {
        let Some(future) = body.as_mut().as_pin_mut() else { return };
        bell.answer();
        let polled = Panic::catch(|| self.region.poll_one(future, &self.body_mark, waker, true));
        match ended(polled, &self.region, || body.set(None)) {
            None => {}
            Some(Outcome::Value(value)) if value.is_failure() => self.fail(Failure::Output(value), bell),
            Some(Outcome::Value(value)) => self.value = Some(value),
            Some(Outcome::Error(never)) => never.absurd(),
            Some(Outcome::Panicked(panic)) => self.fail(Failure::Panic(panic), bell),
            Some(Outcome::Stopped) => self.stop(bell),
        }
    }

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

    /// Takes in those that were started. False if there were none.
    fn take_in(&mut self) -> bool {
        let newcomers = self.inbox.0.take();
        let any = !newcomers.is_empty();
        for newcomer in newcomers {
            self.children.insert(newcomer.future, newcomer.label);
        }
        any
    }

    /// The first failure is the scope's; the others are asked to stop.
    #[cold]
    fn fail(&mut self, failure: Failure<O>, body: &WakeFlag) {
        let second = match self.failure {
            None => {
                self.failure = Some(failure);
                None
            }
            Some(_) => Some(failure),
        };
        // The panic hook has told of a second panic; a second error is of no use to anybody.
        let _ = Panic::catch(|| drop(second));
        self.stop(body);
    }

    fn stop(&mut self, body: &WakeFlag) {
        if let Err(panic) = Panic::catch(|| self.region.request_stop_after_around(StopReason::Sibling))
            && self.failure.is_none()
        {
            self.failure = Some(Failure::Panic(panic));
        }
        // Once: all would be visited for each one that fails after the first. Who is started later hears of it at once.
        if !self.told {
            self.ring_all(body);
        }
    }

    fn ring_all(&mut self, body: &WakeFlag) {
        self.told = true;
        body.ring();
        self.children.ring_all();
    }

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
                match Panic::catch(|| drop(value)) {
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
            .field("opened at", &self.rest.place)
            .field("children", &self.rest.children)
            .finish_non_exhaustive()
    }
}
