//! `scope(async |s| …)`: a body, and children that run concurrently with it.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use convoke_core::raw::{
    DropOutOfLine, Frame, FrameArc, LastUse, OutOfLine, Polled, StopWatch, WakerMark, budget, outside_a_task,
};
use convoke_core::{BodyOutput, Executor, ExecutorRef, Panic, StopReason};
use pin_project_lite::pin_project;

use super::block::{Block, Failure};
use super::spawn::Scope;
use crate::pinned::is_there;
use crate::region::PlainRegion;
use crate::task::Listening;

/// Opens a scope: runs `body`, which starts children with the [`Scope`] it gets, and ends when the body and
/// all children have ended.
///
/// Use this if the children own what they use, and may run in parallel. Use
/// [`local_scope`](crate::local_scope()) if they borrow, and [`join`](crate::join()) for a few futures in one
/// task.
///
/// The first failure stops the others: an `Err` or a panic of a child, or an `Err`, `None` or a panic of the
/// body (see [`BodyOutput`]). The scope waits for them, and then fails with it.
///
/// - *Completes with* the output of the body, or with the error of the child that failed first. Stopped, if
///   the body was stopped; or if the scope was asked to stop and a child stopped, because the body's value
///   may rely on what that child did not do. A child does not stop the scope if it stops by itself, if
///   [`Scope::request_stop`] asked it, or if it has a handle.
/// - *If dropped*, the children are asked to stop, and the task waits for them before it ends.
/// - *Runs on*: the body, in the task that opened the scope; children, as tasks of their own on the same
///   executor, in parallel if it has several threads.
/// - *Panics* with the panic of the body, or of a child, and its name; and outside a task.
///
/// ```
/// use convoke::prelude::*;
///
/// let pool = ThreadPool::new(2).unwrap();
/// let launched = launch(&pool.executor()).start(async {
///     scope(async |s| {
///         let left = s.spawn_future(async { (1..=50).sum::<u32>() });
///         let right = s.spawn_future(async { (51..=100).sum::<u32>() });
///         left.await + right.await
///     })
///     .await
/// });
/// assert_eq!(launched.wait(), Outcome::Value(5050));
/// ```
///
/// A child that returns an error passes it to the scope:
///
/// ```
/// use convoke::prelude::*;
/// use convoke::task::forever;
///
/// async fn fetch(n: u32) -> Result<(), String> {
///     if n == 3 { Err(format!("no page {n}")) } else { forever().await }
/// }
///
/// let outcome = block_on(async {
///     scope(async |s| {
///         for n in 1..=5 {
///             s.spawn(fetch(n));
///         }
///         Ok(())
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(Err("no page 3".to_owned())));
/// ```
#[track_caller]
pub fn scope<O, F, Fut>(body: F) -> ScopeFuture<Fut>
where
    F: FnOnce(Scope<O>) -> Fut,
    Fut: Future<Output = O>,
{
    open(None, Location::caller(), body)
}

/// Opens a scope whose children run on `executor`, unless they name another with [`Child::on`](super::Child::on).
/// Otherwise like [`scope()`].
///
/// Use this if all children run on another executor than the body. Use [`run_on`](crate::run_on()) to run one
/// future there.
///
/// A scope that a child opens has the child's executor. The body stays in its task, and the scopes that it
/// opens have the task's executor. To move the body as well, use [`run_on`](crate::run_on).
///
/// - *Completes with* the output of the body, or with the error of the child that failed first. Stopped, as
///   [`scope()`] is.
/// - *If dropped*, the children are asked to stop, and the task waits for them before it ends.
/// - *Runs on*: the body, in the task that opened the scope; children, as tasks of their own on `executor`.
/// - *Panics* with the panic of the body, or of a child, and its name; and outside a task.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::scope::scope_on;
/// use convoke::env::current;
///
/// let pool = ThreadPool::new(2).unwrap();
/// let workers = pool.executor();
/// let outcome = block_on(async move {
///     let parsed = scope_on(&workers, async |s| {
///         let pages = ["1", "2", "3"]
///             .map(|page| s.spawn_future(async move { page.parse::<u32>() }));
///         assert!(!current::executor().is(&workers), "the body stays");
///         let mut sum = 0;
///         for page in pages {
///             sum += page.await?;
///         }
///         Ok::<_, std::num::ParseIntError>(sum)
///     })
///     .await;
///     parsed.unwrap()
/// });
/// assert_eq!(outcome, Outcome::Value(6));
/// ```
#[track_caller]
pub fn scope_on<X, O, F, Fut>(executor: &X, body: F) -> ScopeFuture<Fut>
where
    X: Executor,
    F: FnOnce(Scope<O>) -> Fut,
    Fut: Future<Output = O>,
{
    open(Some(ExecutorRef::new(executor.clone())), Location::caller(), body)
}

/// Opens a scope whose children run on `executor`, or else on the task's.
#[inline]
pub(crate) fn open<O, F, Fut>(
    executor: Option<ExecutorRef>,
    opened_at: &'static Location<'static>,
    body: F,
) -> ScopeFuture<Fut>
where
    F: FnOnce(Scope<O>) -> Fut,
    Fut: Future<Output = O>,
{
    let block = Frame::current(|frame| match frame {
        Some(frame) => Block::open(frame, executor),
        None => outside_a_task("a scope"),
    });
    let Some(block) = block else { panic!("the frame allocator has no memory left for a scope") };
    let body = body(Scope::new(block.clone()));
    ScopeFuture {
        body: OutOfLine::new(Some(body)),
        block: OutOfLine::new(BlockGuard { listening: Listening::default(), block: Some(block) }),
        region: PlainRegion::new(),
        stopping: false,
        stored: None,
        end: None,
        opened_at,
        watch: StopWatch::new(),
    }
}

pin_project! {
    /// Future of [`scope()`] and [`scope_on`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct ScopeFuture<F: Future> {
        #[pin]
        body: OutOfLine<Option<F>>,
        block: OutOfLine<BlockGuard<F::Output>>,
        region: PlainRegion,
        // True if body and children were asked to stop.
        stopping: bool,
        // Identity of the waker that is stored in the block. Only compared.
        stored: Option<WakerMark>,
        // The end of the body. `None` while it runs, and after a failure, which is stored in the block.
        end: Option<End<F::Output>>,
        opened_at: &'static Location<'static>,
        watch: StopWatch,
    }
}

/// Owner of the block in the scope's future. When it is dropped with children in the block, the task waits
/// for them.
struct BlockGuard<O> {
    /// Dropped before the block: rule 2 of `Listening`.
    listening: Listening,
    block: Option<FrameArc<Block<O>>>,
}

/// An end of the body that is not a failure.
enum End<O> {
    Value(O),
    Stopped,
}

impl<O> BlockGuard<O> {
    /// Gives up the block of a scope that has ended.
    fn end(&mut self) {
        self.listening.end();
        self.block = None;
    }
}

impl<O> DropOutOfLine for BlockGuard<O> {
    #[inline(never)]
    fn drop_out_of_line(guard: LastUse<'_, Self>) {
        guard.drop_here();
    }

    /// Returns false if the scope has ended: it listens no more then.
    #[inline]
    fn has_something_to_drop(&mut self) -> bool {
        self.block.is_some()
    }
}

impl<O> Drop for BlockGuard<O> {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.listening.end();
            Frame::current(|frame| Block::abandon(block, frame));
        }
    }
}

impl<F: Future<Output: BodyOutput>> Future for ScopeFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let mut body = this.body.as_pin();
        Frame::current(|frame| {
            let Some(frame) = frame else { outside_a_task("a scope") };
            let BlockGuard { listening, block } = &mut **this.block;
            let Some(block) = block else { return end_again(this.end, frame) };
            // Only before the first poll: later there is work that may have to be held.
            if this.stored.is_none() && !budget::may_proceed(cx) {
                return Poll::Pending;
            }
            listening.end_if_moved(frame);
            if !*this.stopping {
                // Before the body: it may compute for long in its first poll, while its children run elsewhere.
                // They are asked to stop at once; the body ends in the next poll, for which the request wakes the task.
                listening.listen(frame, block);
            }
            let held = frame.held();
            let mut clone = None;
            let mut body_waits = is_there(body.as_mut());
            loop {
                if !*this.stopping {
                    pass_on_stop(block, this.region, this.stopping, frame, cx);
                }
                if body_waits {
                    // For diagnosis, until the body waits for something more specific.
                    frame.waits_at(this.opened_at);
                    if let Some(end) = poll_body(&mut body, this.region, frame, cx) {
                        body_waits = false;
                        store_end(end, block, this.region, this.stopping, this.end);
                    }
                }
                match wait(block, cx.waker(), this.stored, &mut clone, body_waits, *this.stopping) {
                    Waiting::Began => break,
                    Waiting::FoundFailure => {}
                    Waiting::AllEnded { failure, cut_short } => {
                        this.block.end();
                        budget::spend();
                        // The body may have been polled twice in this loop, and its first poll may have held
                        // the task.
                        frame.restore_held(held);
                        if cut_short && failure.is_none() {
                            // The value may rely on children that did not do their part.
                            drop(this.end.replace(End::Stopped));
                        }
                        return match failure {
                            Some(Failure::Panic(panic)) => panic.resume(),
                            Some(Failure::Output(output)) => Poll::Ready(output),
                            None => end_again(this.end, frame),
                        };
                    }
                }
            }
            if *this.stopping || !body_waits {
                // Body or children are still ending: the task must not end before them.
                frame.hold();
            }
            if !body_waits {
                frame.waits_at(this.opened_at);
            }
            this.watch.watch(frame, cx);
            Poll::Pending
        })
    }
}

/// Asks body and children to stop, if one of them has failed, or the task is asked to stop.
#[inline(always)]
fn pass_on_stop<O>(
    block: &Block<O>,
    region: &mut PlainRegion,
    stopping: &mut bool,
    frame: &Frame<'_>,
    cx: &mut Context<'_>,
) {
    let reason = if block.has_failed() {
        Some(StopReason::Sibling)
    } else {
        // Asked here, and not by the body's frame: the body may have ended.
        let around = if frame.may_be_asked_to_stop() { frame.stop_reason() } else { None };
        around.or_else(|| region.hear_exploration(cx))
    };
    if let Some(reason) = reason {
        *stopping = true;
        stop_all(block, region, reason);
    }
}

/// Asks body and children to stop.
#[cold]
#[inline(never)]
fn stop_all<O>(block: &Block<O>, region: &mut PlainRegion, reason: StopReason) {
    region.request_stop(reason);
    block.stop_children(reason);
}

/// Polls the body. If it has ended, drops it, and returns its output, `None` if it was stopped, or its panic.
#[inline]
fn poll_body<F: Future>(
    body: &mut Pin<&mut Option<F>>,
    region: &PlainRegion,
    frame: &Frame<'_>,
    cx: &mut Context<'_>,
) -> Option<Result<Option<F::Output>, Panic>> {
    // One frame for the poll and for dropping the body. `pass_on_stop` has told the region of a stop.
    region.poll_several(frame, region.stopped(), |several| {
        let future = body.as_mut().as_pin_mut()?;
        let end = match Panic::catch(|| several.poll(future, cx)) {
            Ok(Polled::Pending) => return None,
            Ok(Polled::Ready(value)) => Ok(Some(value)),
            Ok(Polled::Stopped) => Ok(None),
            Err(panic) => Err(panic),
        };
        match Panic::catch(|| body.set(None)) {
            Err(panic) if end.is_ok() => Some(Err(panic)),
            _ => Some(end),
        }
    })
}

/// Stores the end of the body: a failure in the block, a value or a stop in `stored`.
#[inline]
fn store_end<O: BodyOutput>(
    end: Result<Option<O>, Panic>,
    block: &Block<O>,
    region: &PlainRegion,
    stopping: &mut bool,
    stored: &mut Option<End<O>>,
) {
    match end {
        Ok(Some(value)) if value.is_failure() => block.fail(Failure::Output(value), *stopping),
        Ok(Some(value)) => *stored = Some(End::Value(value)),
        Ok(None) => {
            *stored = Some(End::Stopped);
            *stopping = true;
            block.stop_children(region.stop_reason().unwrap_or(StopReason::Sibling));
        }
        Err(panic) => block.fail(Failure::Panic(panic), *stopping),
    }
}

/// Result of [`wait`].
enum Waiting<O> {
    /// The waker is stored in the block.
    Began,
    /// A child or the body has failed, and the others were not asked to stop yet.
    FoundFailure,
    /// Body and children have ended, and so has the scope. `cut_short`: a child was stopped that had not done
    /// its part.
    AllEnded { failure: Option<Failure<O>>, cut_short: bool },
}

/// Stores the waker in the block, unless there is nothing to wait for. `clone` caches a clone of the waker
/// between calls.
#[inline]
fn wait<O>(
    block: &Block<O>,
    waker: &Waker,
    stored: &mut Option<WakerMark>,
    clone: &mut Option<Waker>,
    body_waits: bool,
    stopping: bool,
) -> Waiting<O> {
    if body_waits {
        if *stored == Some(WakerMark::of(waker)) && (stopping || !block.has_news()) {
            return Waiting::Began;
        }
    } else {
        let mut state = block.state.lock();
        if state.children.is_empty() && !block.has_news() && !state.has_consequence() {
            // Nothing has failed: most scopes end here.
            state.end();
            return Waiting::AllEnded { failure: None, cut_short: state.cut_short };
        }
    }
    wait_or_fail(block, waker, stored, clone, body_waits, stopping)
}

/// Stores the waker in the block, unless there is nothing to wait for.
#[inline(never)]
fn wait_or_fail<O>(
    block: &Block<O>,
    waker: &Waker,
    stored: &mut Option<WakerMark>,
    clone: &mut Option<Waker>,
    body_waits: bool,
    stopping: bool,
) -> Waiting<O> {
    let identity = WakerMark::of(waker);
    let mut state = block.state.lock();
    if body_waits || !state.children.is_empty() {
        // Cloned without the lock: a clone may run foreign code.
        drop(state);
        if clone.is_none() {
            *clone = Some(waker.clone());
        }
        state = block.state.lock();
    }
    if block.has_news() {
        block.check_unheard(&mut state);
    }
    if state.failure.is_some() && !stopping {
        return Waiting::FoundFailure;
    }
    if !body_waits && state.children.is_empty() {
        state.end();
        let ((failure, outranked), cut_short) = (state.take_failure(), state.cut_short);
        drop(state);
        // The panic hook has reported a panic of its destructor.
        let _ = Panic::catch(|| drop(outranked));
        return Waiting::AllEnded { failure, cut_short };
    }
    state.body_ended = !body_waits;
    let before = core::mem::replace(&mut state.waker, clone.take());
    let unheard = if stopping { None } else { state.unheard.clone() };
    drop(state);
    drop(before);
    *stored = Some(identity);
    match unheard {
        Some(unheard) if unheard.set_waker(waker.clone()) => Waiting::FoundFailure,
        _ => Waiting::Began,
    }
}

/// Completes with the body's value, or as stopped; as stopped also if it is polled again.
fn end_again<O>(end: &mut Option<End<O>>, frame: &Frame<'_>) -> Poll<O> {
    match end.take() {
        Some(End::Value(value)) => Poll::Ready(value),
        _ => {
            frame.set_stopped();
            Poll::Pending
        }
    }
}

impl<F: Future> fmt::Debug for ScopeFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopeFuture").field("opened at", &self.opened_at).finish_non_exhaustive()
    }
}
