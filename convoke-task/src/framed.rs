//! `frame(future)`: a future in memory of its own, from the task's frame allocator. It replaces `Box::pin`:
//! for functions that call themselves, for large futures that run seldom, for futures of different types in
//! one collection.

#![allow(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll};

use convoke_core::FrameAllocator;
use convoke_core::raw::{FrameBox, current_allocator};

/// Moves a future into memory of the running task's frame allocator; outside a task, of the default one.
///
/// - *Completes with* what the future returns.
/// - *If dropped*, the future is dropped, and its memory freed, on whatever thread.
/// - *Runs on* the task that awaits it.
///
/// # Panics
/// If the allocator has no memory left: see [`try_frame`].
///
/// An `async fn` that calls itself needs it, since otherwise its frame would contain itself:
///
/// ```
/// use convoke::prelude::*;
/// use convoke::alloc::frame;
///
/// async fn fibonacci(n: u64) -> u64 {
///     if n < 2 {
///         return n;
///     }
///     frame(fibonacci(n - 1)).await + frame(fibonacci(n - 2)).await
/// }
///
/// assert_eq!(block_on(fibonacci(10)), Outcome::Value(55));
/// ```
#[inline]
#[track_caller]
pub fn frame<F: Future>(future: F) -> Framed<F> {
    match try_frame(future) {
        Ok(framed) => framed,
        Err(future) => no_memory(&future),
    }
}

/// Moves a future into memory of the running task's frame allocator, or hands it back if there is no memory.
/// Otherwise as [`frame`].
///
/// # Errors
/// With the future, if there is no memory for it.
///
/// ```
/// use convoke::alloc::{Bounded, FrameAllocator, try_frame};
/// use convoke::env::Changes;
/// use convoke::executor::block_on_with;
/// use convoke::prelude::*;
///
/// let little = FrameAllocator::new(Bounded::new(4096));
/// let outcome = block_on_with(Changes::new().allocator(little), async {
///     let large = [1_u8; 8192];
///     match try_frame(async move { large.len() }) {
///         Ok(_) => "there was room",
///         Err(_future) => "no room",
///     }
/// });
/// assert_eq!(outcome, Outcome::Value("no room"));
/// ```
#[inline]
pub fn try_frame<F: Future>(future: F) -> Result<Framed<F>, F> {
    allocate(future, current_allocator())
}

/// Moves a value that contains a future into memory of this frame allocator.
#[inline]
fn allocate<F>(future: F, allocator: FrameAllocator) -> Result<Framed<F>, F> {
    Ok(Framed { future: FrameBox::try_new_in(allocator, future)? })
}

/// Moves a future into memory of the frame allocator, and erases its type: for futures of several types in
/// one collection, and to keep types small. Use [`frame_dyn_local`] if the future is not `Send`.
///
/// - *Completes with* what the future returns.
/// - *If dropped*, the future is dropped, and its memory freed, on whatever thread.
/// - *Runs on* the task that awaits it.
///
/// # Panics
/// If the allocator has no memory left.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::alloc::frame_dyn;
///
/// let outcome = block_on(async {
///     let second = async {
///         checkpoint().await;
///         2
///     };
///     let works = [frame_dyn(async { 1 }), frame_dyn(second)];
///     let mut sum = 0;
///     for work in works {
///         sum += work.await;
///     }
///     sum
/// });
/// assert_eq!(outcome, Outcome::Value(3));
/// ```
#[inline]
#[track_caller]
pub fn frame_dyn<'a, T>(
    future: impl Future<Output = T> + Send + 'a,
) -> Framed<dyn Future<Output = T> + Send + 'a> {
    erase(frame(future))
}

/// Moves a future into memory of the frame allocator, or of the global one if that has none left, and erases its type:
/// for clean-up, which must not be skipped for lack of memory.
pub(crate) fn frame_clean_up<'a, T>(
    clean_up: impl Future<Output = T> + Send + 'a,
) -> Framed<dyn Future<Output = T> + Send + 'a> {
    let framed = try_frame(clean_up).or_else(|clean_up| allocate(clean_up, FrameAllocator::system()));
    erase(framed.unwrap_or_else(|clean_up| no_memory(&clean_up)))
}

/// Erases the type of a future.
fn erase<'a, T>(
    framed: Framed<impl Future<Output = T> + Send + 'a>,
) -> Framed<dyn Future<Output = T> + Send + 'a> {
    Framed { future: framed.future.into_dyn_future() }
}

/// Moves a future that is not `Send` into memory of the frame allocator, and erases its type. Otherwise as
/// [`frame_dyn`].
#[inline]
#[track_caller]
pub fn frame_dyn_local<'a, T>(future: impl Future<Output = T> + 'a) -> Framed<dyn Future<Output = T> + 'a> {
    Framed { future: frame(future).future.into_dyn_local_future() }
}

/// A future in memory of a frame allocator: see [`frame`] and [`frame_dyn`].
#[must_use = "futures do nothing until they are awaited"]
pub struct Framed<F: ?Sized> {
    /// Never taken apart: the future is pinned.
    future: FrameBox<F>,
}

impl<F> Framed<F> {
    /// Moves a value that contains a future into memory of the current frame allocator: see [`frame`].
    ///
    /// # Panics
    /// If the allocator has no memory left.
    #[track_caller]
    pub(crate) fn new(holder: F) -> Self {
        match allocate(holder, current_allocator()) {
            Ok(framed) => framed,
            Err(holder) => no_memory(&holder),
        }
    }
}

impl<F: ?Sized> Framed<F> {
    /// Changes the box of the future, to erase the future's type.
    pub(crate) fn map<G: ?Sized>(self, erase: impl FnOnce(FrameBox<F>) -> FrameBox<G>) -> Framed<G> {
        Framed { future: erase(self.future) }
    }

    /// Returns the address of the future, which is valid until this is dropped.
    #[inline]
    pub(crate) fn pointer(&self) -> NonNull<F> {
        FrameBox::pointer(&self.future)
    }
}

impl<F: Future + ?Sized> Future for Framed<F> {
    type Output = F::Output;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the box is owned, and never taken apart: the future does not move until it is dropped in place.
        unsafe { Pin::new_unchecked(&mut *self.future) }.poll(cx)
    }
}

#[cold]
#[track_caller]
fn no_memory<F>(_: &F) -> ! {
    panic!(
        "the frame allocator has no {} bytes left for a framed future; give it more memory, or use `try_frame`",
        size_of::<F>()
    )
}

impl<F: ?Sized> fmt::Debug for Framed<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let allocator = FrameBox::allocator(&self.future);
        f.debug_struct("Framed").field("allocator", allocator).finish_non_exhaustive()
    }
}
