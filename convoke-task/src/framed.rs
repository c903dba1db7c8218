//! `frame(future)`: a future in memory of its own, from the task's frame allocator. It replaces `Box::pin`:
//! for functions that call themselves, for large futures that run seldom, for futures of different types in
//! one collection.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll};

use convoke_core::FrameAllocator;
use convoke_core::raw::Frame;

use crate::pinned;

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
    let layout = Layout::new::<F>();
    let memory = if layout.size() == 0 {
        Some(NonNull::dangling())
    } else {
        allocator.allocate(layout).map(NonNull::cast)
    };
    let Some(memory) = memory else { return Err(future) };
    // SAFETY: the memory has the layout of `F`, or `F` has no size.
    unsafe { memory.write(future) };
    Ok(Framed { future: memory, allocator, _owned: PhantomData })
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
    // SAFETY: unsizing does not change the address.
    unsafe { framed.with_pointer(|future| future as *mut (dyn Future<Output = T> + Send + 'a)) }
}

/// Moves a future that is not `Send` into memory of the frame allocator, and erases its type. Otherwise as
/// [`frame_dyn`].
#[inline]
#[track_caller]
pub fn frame_dyn_local<'a, T>(future: impl Future<Output = T> + 'a) -> Framed<dyn Future<Output = T> + 'a> {
    // SAFETY: unsizing does not change the address.
    unsafe { frame(future).with_pointer(|future| future as *mut (dyn Future<Output = T> + 'a)) }
}

/// A future in memory of a frame allocator: see [`frame`] and [`frame_dyn`].
#[must_use = "futures do nothing until they are awaited"]
pub struct Framed<F: ?Sized> {
    /// Owned, and pinned: it does not move before it is dropped.
    future: NonNull<F>,
    allocator: FrameAllocator,
    _owned: PhantomData<F>,
}

// SAFETY: it owns the future, as a `Box` does.
unsafe impl<F: Send + ?Sized> Send for Framed<F> {}
// SAFETY: `&Framed<F>` gives no more than `&F`, as with a `Box`.
unsafe impl<F: Sync + ?Sized> Sync for Framed<F> {}

// The future does not move when this does.
impl<F: ?Sized> Unpin for Framed<F> {}

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

    /// Changes the type of the pointer, to erase the future's type.
    ///
    /// # Safety
    /// `unsize` returns the address that it is given.
    pub(crate) unsafe fn with_pointer<G: ?Sized>(self, unsize: impl FnOnce(*mut F) -> *mut G) -> Framed<G> {
        let mut this = ManuallyDrop::new(self);
        let allocator = core::mem::replace(&mut this.allocator, FrameAllocator::recycling());
        let future = NonNull::new(unsize(this.future.as_ptr())).expect("the address stays");
        Framed { future, allocator, _owned: PhantomData }
    }
}

impl<F: ?Sized> Framed<F> {
    /// Returns the address of the future, which is valid until this is dropped.
    #[inline]
    pub(crate) fn pointer(&self) -> NonNull<F> {
        self.future
    }
}

impl<F: Future + ?Sized> Future for Framed<F> {
    type Output = F::Output;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future is owned, and does not move until it is dropped in place.
        unsafe { Pin::new_unchecked(self.future.as_mut()) }.poll(cx)
    }
}

impl<F: ?Sized> Drop for Framed<F> {
    // Not inlined: it is copied to wherever one is dropped.
    #[inline(never)]
    fn drop(&mut self) {
        /// Frees the memory, also if the destructor of the future panics.
        struct Free<'a>(&'a FrameAllocator, NonNull<u8>, Layout);

        impl Drop for Free<'_> {
            #[inline]
            fn drop(&mut self) {
                if self.2.size() != 0 {
                    // SAFETY: it came from this allocator with this layout, and its contents were dropped.
                    unsafe { self.0.deallocate(self.1, self.2) };
                }
            }
        }

        // SAFETY: the future is alive until it is dropped below.
        let layout = unsafe { pinned::layout(self.future) };
        let _memory = Free(&self.allocator, self.future.cast(), layout);
        // SAFETY: the future is owned, and is not used again.
        unsafe { self.future.drop_in_place() };
    }
}

/// Returns the frame allocator of the running task, or the default.
#[inline]
fn current_allocator() -> FrameAllocator {
    Frame::current(|frame| match frame {
        Some(frame) => frame.allocator().clone(),
        None => FrameAllocator::default(),
    })
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
        f.debug_struct("Framed").field("allocator", &self.allocator).finish_non_exhaustive()
    }
}
