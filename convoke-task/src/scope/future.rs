//! `scope(async |s| …)`: a body, and children that run beside it.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use convoke_core::raw::{Frame, Polled, StopWatch, WakerMark, outside_a_task};
use convoke_core::{BodyOutput, Executor, ExecutorRef, Panic, StopReason};
use pin_project_lite::pin_project;

use super::block::{Block, Failure};
use super::spawn::Scope;
use crate::frame_arc::FrameArc;
use crate::region::Region;

/// Opens a scope: runs `body`, which starts children with the [`Scope`] it is given, and ends when the body and all
/// children have ended. The body is a child like the others.
///
/// The first child to fail, with an `Err` or a panic, stops the others; they come home, and its failure is the scope's.
///
/// - *Completes with* what the body returns, or with the error of the child that failed first. Stopped, if the body was,
///   or if the scope was asked to stop and a child has stopped for it: a value would count on what that child did not do. A
///   child that stops by itself, or that the program [asks](Scope::request_stop), is merely gone, and one with a handle is
///   its handle's. If a child panicked the panic goes on here, with the child's name.
/// - *If dropped*, the children are asked to stop, and the task waits for them before it ends.
/// - *Runs on*: the body, in the task that opened the scope; children, on the same executor as tasks of their own, in
///   parallel where it has several threads.
/// - *Panics* outside a task.
///
/// ```
/// use convoke::prelude::*;
///
/// let pool = ThreadPool::new(2).unwrap();
/// let outcome = sync_wait(task(async {
///     scope(async |s| {
///         let left = s.spawn_future(async { (1..=50).sum::<u32>() });
///         let right = s.spawn_future(async { (51..=100).sum::<u32>() });
///         left.await + right.await
///     })
///     .await
/// }).starts_on(&pool.executor()));
/// assert_eq!(outcome, Outcome::Value(5050));
/// ```
///
/// The error of a child is the scope's, by its type:
///
/// ```
/// use convoke::prelude::*;
///
/// async fn fetch(n: u32) -> Result<(), String> {
///     if n == 3 { Err(format!("no page {n}")) } else { Ok(never().await) }
/// }
///
/// let outcome = sync_wait(task(async {
///     scope(async |s| {
///         for n in 1..=5 {
///             s.spawn(fetch(n));
///         }
///         Ok(())
///     })
///     .await
/// }));
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

/// Opens a scope whose children run on `executor`, if they do not say otherwise; for the rest it is as [`scope()`].
///
/// The scopes that a child opens are on its executor, and so their children run there too. The body stays where it is, and
/// the scopes that it opens with it. To move the body as well, [run the scope there](crate::run_on).
///
/// - *Completes with* what [`scope()`] does.
/// - *If dropped*, the children are asked to stop, and the task waits for them before it ends.
/// - *Runs on*: the body, in the task that opened the scope; children, on `executor` as tasks of their own.
/// - *Panics* outside a task.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::current;
///
/// let pool = ThreadPool::new(2).unwrap();
/// let workers = pool.executor();
/// let outcome = sync_wait(task(async move {
///     let parsed = scope_on(&workers, async |s| {
///         let pages = ["1", "2", "3"].map(|page| s.spawn_future(async move { page.parse::<u32>() }));
///         assert!(!current::executor().is(&workers), "the body has stayed");
///         let mut sum = 0;
///         for page in pages {
///             sum += page.await?;
///         }
///         Ok::<_, std::num::ParseIntError>(sum)
///     })
///     .await;
///     parsed.unwrap()
/// }));
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

/// Opens a scope whose children run on the executor, or else on the task's.
#[inline]
pub(crate) fn open<O, F, Fut>(
    executor: Option<ExecutorRef>,
    place: &'static Location<'static>,
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
        body: Some(body),
        home: OwnerThread { block: Some(block) },
        region: Region::new(),
        stopping: false,
        placed: None,
        end: None,
        place,
        watch: StopWatch::new(),
    }
}

pin_project! {
    /// See [`scope()`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct ScopeFuture<F: Future> {
        #[pin]
        body: Option<F>,
        home: OwnerThread<F::Output>,
        region: Region,
        // Whether body and children were asked to stop.
        stopping: bool,
        // The waker that was put into the block. Compared, never used.
        placed: Option<WakerMark>,
        // How the body has ended; `None` also if that was a failure, which is in the block.
        end: Option<End<F::Output>>,
        place: &'static Location<'static>,
        watch: StopWatch,
    }
}

/// Drops the block as it should be.
struct OwnerThread<O> {
    block: Option<FrameArc<Block<O>>>,
}

enum End<O> {
    Value(O),
    Stopped,
}

impl<O> Drop for OwnerThread<O> {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            Frame::current(|frame| Block::abandon(block, frame));
        }
    }
}

impl<F: Future<Output: BodyOutput>> Future for ScopeFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        Frame::current(|frame| {
            let Some(frame) = frame else { outside_a_task("a scope") };
            let Some(block) = &this.home.block else { return end_again(this.end, frame) };
            let held = Frame::held_before();
            let mut clone = None;
            loop {
                if !*this.stopping {
                    pass_on_stop(block, this.region, this.stopping, frame, cx);
                }
                if this.body.is_some() {
                    // Until the body has something better to say: where it waits itself.
                    frame.waits_at(this.place);
                }
                if this.body.is_some()
                    && let Some(end) = poll_body(&mut this.body, this.region, cx)
                {
                    keep_end(end, block, this.region, this.stopping, this.end);
                }
                let body_waits = this.body.is_some();
                match wait(block, cx.waker(), this.placed, &mut clone, body_waits, *this.stopping) {
                    Waiting::Began => break,
                    Waiting::FoundFailure => {}
                    Waiting::AllHome { failure, cut_short } => {
                        this.home.block = None;
                        // The body may have been polled twice, and have held the task for the first time of it.
                        Frame::forget_holds(held);
                        if cut_short && failure.is_none() {
                            // The value counts on children that did not get to do their part.
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
            if *this.stopping || this.body.is_none() {
                // Body and children are on their way home.
                frame.hold();
            }
            if this.body.is_none() {
                frame.waits_at(this.place);
            }
            this.watch.watch(frame, cx);
            Poll::Pending
        })
    }
}

/// Asks body and children to stop, if one of them has failed, or somebody above has asked.
#[inline]
fn pass_on_stop<O>(
    block: &Block<O>,
    region: &mut Region,
    stopping: &mut bool,
    frame: &Frame<'_>,
    cx: &mut Context<'_>,
) {
    let reason = if block.has_failed() {
        Some(StopReason::Sibling)
    } else {
        // Also when the body, which would hear of it, has ended.
        frame.stop_reason().or_else(|| region.hear_exploration(cx))
    };
    if let Some(reason) = reason {
        *stopping = true;
        region.request_stop(reason);
        block.stop_children(reason);
    }
}

/// What came of the body, if it has ended: a value, `None` if it was stopped, or a panic. It is dropped then.
#[inline]
fn poll_body<F: Future>(
    body: &mut Pin<&mut Option<F>>,
    region: &mut Region,
    cx: &mut Context<'_>,
) -> Option<Result<Option<F::Output>, Panic>> {
    let future = body.as_mut().as_pin_mut()?;
    let end = match Panic::catch(|| region.poll(future, cx)) {
        Ok(Polled::Pending) => return None,
        Ok(Polled::Ready(value)) => Ok(Some(value)),
        Ok(Polled::Stopped) => Ok(None),
        Err(panic) => Err(panic),
    };
    match Panic::catch(|| region.within(|| body.set(None))) {
        Err(panic) if end.is_ok() => Some(Err(panic)),
        _ => Some(end),
    }
}

/// What the body has to say of how all ends.
#[inline]
fn keep_end<O: BodyOutput>(
    end: Result<Option<O>, Panic>,
    block: &Block<O>,
    region: &Region,
    stopping: &mut bool,
    kept: &mut Option<End<O>>,
) {
    match end {
        Ok(Some(value)) if value.is_failure() => block.fail(Failure::Output(value)),
        Ok(Some(value)) => *kept = Some(End::Value(value)),
        Ok(None) => {
            *kept = Some(End::Stopped);
            *stopping = true;
            block.stop_children(region.stop_reason().unwrap_or(StopReason::Sibling));
        }
        Err(panic) => block.fail(Failure::Panic(panic)),
    }
}

/// What comes of waiting for body and children.
enum Waiting<O> {
    /// Who is to be woken is known to the children.
    Began,
    /// One of them has failed meanwhile, and the others are to be asked to stop.
    FoundFailure,
    /// There is nobody to wait for. `cut_short`: a child was stopped that had not done its part.
    AllHome { failure: Option<Failure<O>>, cut_short: bool },
}

/// Waits for the body, and for the children. `clone` is kept from one look to the next.
#[inline]
fn wait<O>(
    block: &Block<O>,
    waker: &Waker,
    placed: &mut Option<WakerMark>,
    clone: &mut Option<Waker>,
    body_waits: bool,
    stopping: bool,
) -> Waiting<O> {
    let identity = WakerMark::of(waker);
    if body_waits && *placed == Some(identity) && (stopping || !block.has_failed()) {
        return Waiting::Began;
    }
    let mut state = block.state.lock();
    if body_waits || !state.children.is_empty() {
        // A waker is cloned without the lock: it may be anybody's.
        drop(state);
        if clone.is_none() {
            *clone = Some(waker.clone());
        }
        state = block.state.lock();
    }
    if state.failure.is_some() && !stopping {
        return Waiting::FoundFailure;
    }
    if !body_waits && state.children.is_empty() {
        state.ended = true;
        return Waiting::AllHome { failure: state.failure.take(), cut_short: state.cut_short };
    }
    state.body_ended = !body_waits;
    let before = core::mem::replace(&mut state.waker, clone.take());
    drop(state);
    drop(before);
    *placed = Some(identity);
    Waiting::Began
}

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
        f.debug_struct("ScopeFuture").field("opened at", &self.place).finish_non_exhaustive()
    }
}
