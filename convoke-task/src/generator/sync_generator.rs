//! A generator for code that does not await: an iterator whose body is written as a loop that yields.

use core::fmt;
use core::future::Future;
use core::iter::FusedIterator;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::PoisonError;

use convoke_core::raw::sync::Mutex;
use convoke_core::raw::{FrameArc, FrameBox};

/// Creates an iterator from a body that yields values with the [`SyncYielder`] it gets. The body runs in
/// [`Iterator::next`], from one `yield_value` to the next. It does not run ahead, and an item costs no
/// allocation.
///
/// Use it for code that does not await; in a task, a [`generator()`](super::generator()) can await anything. The
/// body awaits its yielder, and functions that do the same, and nothing else. A panic of the body goes on in
/// the consumer, and ends the iterator. Dropping the iterator drops the body.
///
/// # Panics
/// [`Iterator::next`] panics if the body does, and if it waits for anything but its yielder.
///
/// ```
/// use convoke::task::{SyncYielder, sync_generator};
///
/// /// Yields the leaves of a tree, from left to right.
/// enum Tree {
///     Leaf(u32),
///     Node(Vec<Tree>),
/// }
///
/// async fn leaves(tree: &Tree, y: &SyncYielder<u32>) {
///     match tree {
///         Tree::Leaf(leaf) => y.yield_value(*leaf).await,
///         Tree::Node(children) => {
///             for child in children {
///                 Box::pin(leaves(child, y)).await;
///             }
///         }
///     }
/// }
///
/// let right = Tree::Node(vec![Tree::Leaf(2), Tree::Leaf(3)]);
/// let tree = Tree::Node(vec![Tree::Leaf(1), right]);
/// let numbers = sync_generator(async |y| leaves(&tree, &y).await);
/// let sums = numbers.map(|number| number * number);
/// assert_eq!(sums.collect::<Vec<_>>(), [1, 4, 9]);
/// ```
#[track_caller]
pub fn sync_generator<T, B, F>(body: B) -> SyncGenerator<T, F>
where
    B: FnOnce(SyncYielder<T>) -> F,
    F: Future<Output = ()>,
{
    let slot = FrameArc::in_task(Mutex::new(None));
    let body = FrameBox::pin_in_task(body(SyncYielder { slot: slot.clone() }));
    SyncGenerator { body: Some(body), slot, location: Location::caller() }
}

/// The slot for one value. Between calls of `next` it is empty.
type Slot<T> = FrameArc<Mutex<Option<T>>>;

fn take<T>(slot: &Slot<T>) -> Option<T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Iterator of the values that a body yields. Returned by [`sync_generator()`].
#[must_use = "a generator does nothing until it is asked for a value"]
pub struct SyncGenerator<T, F> {
    /// `None` after its end.
    body: Option<Pin<FrameBox<F>>>,
    slot: Slot<T>,
    location: &'static Location<'static>,
}

/// Yields the values of a [`sync_generator()`], which passes it to its body. Clones yield to the same iterator.
pub struct SyncYielder<T> {
    slot: Slot<T>,
}

/// Future of [`SyncYielder::yield_value`].
#[must_use = "futures do nothing until they are awaited"]
pub struct SyncYield<T> {
    value: Option<T>,
    slot: Slot<T>,
}

impl<T> SyncYielder<T> {
    /// Passes a value to the consumer.
    ///
    /// - *Completes with* `()`, when the consumer asks for the next value.
    /// - *If dropped* before the value was passed on, the value is dropped.
    /// - *Runs on* the thread of the consumer.
    pub fn yield_value(&self, value: T) -> SyncYield<T> {
        SyncYield { value: Some(value), slot: self.slot.clone() }
    }
}

// The value is never pinned.
impl<T> Unpin for SyncYield<T> {}

impl<T> Future for SyncYield<T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.value.is_none() {
            return Poll::Ready(());
        }
        let mut slot = this.slot.lock().unwrap_or_else(PoisonError::into_inner);
        // Another branch of the body may have yielded in this poll. Then this one has its turn in the next.
        if slot.is_none() {
            *slot = this.value.take();
        }
        drop(slot);
        // For combinators that poll only branches that were woken.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<T, F: Future<Output = ()>> Iterator for SyncGenerator<T, F> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        // Taken out, so that a body that panics is gone.
        let mut body = self.body.take()?;
        let polled = body.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let value = take(&self.slot);
        if polled.is_pending() {
            assert!(
                value.is_some(),
                "the body of the `sync_generator` at {} waits for something other than its yielder, and nothing would \
                 wake it; use a `generator` in a task",
                self.location
            );
            self.body = Some(body);
        }
        value
    }
}

impl<T, F: Future<Output = ()>> FusedIterator for SyncGenerator<T, F> {}

impl<T> Clone for SyncYielder<T> {
    fn clone(&self) -> Self {
        Self { slot: self.slot.clone() }
    }
}

impl<T, F> fmt::Debug for SyncGenerator<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncGenerator").field("ended", &self.body.is_none()).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for SyncYielder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncYielder").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for SyncYield<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncYield").field("given", &self.value.is_none()).finish()
    }
}
