//! `frame(future)`: a child future in memory of its own, from the chain's frame allocator. It is what `Box::pin` is elsewhere:
//! for functions that call themselves, for large futures that run seldom, for futures of any type.

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

/// A future in memory of the chain's frame allocator: that of the task which runs now, outside all tasks the default.
///
/// - *Completes with* what the future returns.
/// - *If dropped*, the future is dropped, and the memory goes back where it came from, on whatever thread.
/// - *Runs on* the task that awaits it.
///
/// # Panics
/// If the allocator has no memory left: see [`try_frame`].
///
/// An `async fn` that calls itself needs it, for otherwise its frame would contain itself:
///
/// ```
/// use convoke::prelude::*;
///
/// async fn fibonacci(n: u64) -> u64 {
///     if n < 2 {
///         return n;
///     }
///     frame(fibonacci(n - 1)).await + frame(fibonacci(n - 2)).await
/// }
///
/// assert_eq!(sync_wait(task(fibonacci(10))), Outcome::Value(55));
/// ```
#[inline]
#[track_caller]
pub fn frame<F: Future>(future: F) -> Framed<F> {
    match try_frame(future) {
        Ok(framed) => framed,
        Err(future) => no_memory(&future),
    }
}

/// The same; if the allocator has no memory left the future is handed back.
///
/// # Errors
/// With the future, if there is no memory for it.
///
/// ```
/// use convoke::env::Changes;
/// use convoke::frames::{Bounded, FrameAllocator};
/// use convoke::prelude::*;
/// use convoke::try_frame;
///
/// let little = FrameAllocator::new(Bounded::new(4096));
/// let outcome = sync_wait_with(Changes::new().allocator(little), task(async {
///     let large = [1_u8; 8192];
///     match try_frame(async move { large.len() }) {
///         Ok(_) => "there was room",
///         Err(_future) => "no room",
///     }
/// }));
/// assert_eq!(outcome, Outcome::Value("no room"));
/// ```
#[inline]
pub fn try_frame<F: Future>(future: F) -> Result<Framed<F>, F> {
    place(future)
}

/// The same for whatever has a future in it.
#[inline]
fn place<F>(future: F) -> Result<Framed<F>, F> {
    let allocator = current_allocator();
    let layout = Layout::new::<F>();
    let memory = if layout.size() == 0 {
        Some(NonNull::dangling())
    } else {
        allocator.allocate(layout).map(NonNull::cast)
    };
    let Some(memory) = memory else { return Err(future) };
    // SAFETY: the memory fits and is ours, or nothing needs none.
    unsafe { memory.write(future) };
    Ok(Framed { future: memory, allocator, _owned: PhantomData })
}

/// As [`frame`], and forgets the type: for futures of several types in one place, and to keep types small.
///
/// - *Completes with* what the future returns.
/// - *If dropped*, the future is dropped, and the memory goes back where it came from, on whatever thread.
/// - *Runs on* the task that awaits it.
///
/// # Panics
/// If the allocator has no memory left.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::frame_dyn;
///
/// let outcome = sync_wait(task(async {
///     let works = [frame_dyn(async { 1 }), frame_dyn(async { just(2).await })];
///     let mut sum = 0;
///     for work in works {
///         sum += work.await;
///     }
///     sum
/// }));
/// assert_eq!(outcome, Outcome::Value(3));
/// ```
#[inline]
#[track_caller]
pub fn frame_dyn<'a, T>(
    future: impl Future<Output = T> + Send + 'a,
) -> Framed<dyn Future<Output = T> + Send + 'a> {
    // SAFETY: the pointer is the same.
    unsafe { frame(future).with_pointer(|future| future as *mut (dyn Future<Output = T> + Send + 'a)) }
}

/// As [`frame_dyn`], for futures that must not leave their thread.
#[inline]
#[track_caller]
pub fn frame_dyn_local<'a, T>(future: impl Future<Output = T> + 'a) -> Framed<dyn Future<Output = T> + 'a> {
    // SAFETY: the pointer is the same.
    unsafe { frame(future).with_pointer(|future| future as *mut (dyn Future<Output = T> + 'a)) }
}

/// See [`frame`]. Also made for types that are not known: see [`frame_dyn`].
#[must_use = "futures do nothing until they are awaited"]
pub struct Framed<F: ?Sized> {
    /// Ours, and pinned: it does not move before it is dropped.
    future: NonNull<F>,
    allocator: FrameAllocator,
    _owned: PhantomData<F>,
}

// SAFETY: it owns the future, as a `Box` does.
unsafe impl<F: Send + ?Sized> Send for Framed<F> {}
// SAFETY: as above.
unsafe impl<F: Sync + ?Sized> Sync for Framed<F> {}

// The future stays where it is when this moves.
impl<F: ?Sized> Unpin for Framed<F> {}

impl<F> Framed<F> {
    /// In memory of the chain's frame allocator, whatever has a future in it: see [`frame`].
    ///
    /// # Panics
    /// If the allocator has no memory left.
    #[track_caller]
    pub(crate) fn new(holder: F) -> Self {
        match place(holder) {
            Ok(framed) => framed,
            Err(holder) => no_memory(&holder),
        }
    }

    /// The same memory, as something whose type is not known.
    ///
    /// # Safety
    /// `unsize` returns the pointer that it is given.
    pub(crate) unsafe fn with_pointer<G: ?Sized>(self, unsize: impl FnOnce(*mut F) -> *mut G) -> Framed<G> {
        let this = ManuallyDrop::new(self);
        // SAFETY: the field is not used again.
        let allocator = unsafe { (&raw const this.allocator).read() };
        // SAFETY: the caller's: it is what it was, and so is not null.
        let future = unsafe { NonNull::new_unchecked(unsize(this.future.as_ptr())) };
        Framed { future, allocator, _owned: PhantomData }
    }
}

impl<F: ?Sized> Framed<F> {
    /// Where it is, until this is dropped.
    #[inline]
    pub(crate) fn pointer(&self) -> NonNull<F> {
        self.future
    }
}

impl<F: Future + ?Sized> Future for Framed<F> {
    type Output = F::Output;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future is ours, and stays where it is until it is dropped there.
        unsafe { Pin::new_unchecked(self.future.as_mut()) }.poll(cx)
    }
}

impl<F: ?Sized> Drop for Framed<F> {
    #[inline]
    fn drop(&mut self) {
        /// Gives the memory back, also if the future panics on its way out.
        struct GiveBack<'a>(&'a FrameAllocator, NonNull<u8>, Layout);

        impl Drop for GiveBack<'_> {
            #[inline]
            fn drop(&mut self) {
                if self.2.size() != 0 {
                    // SAFETY: it came from there with this layout, and what was in it is gone.
                    unsafe { self.0.deallocate(self.1, self.2) };
                }
            }
        }

        // SAFETY: the future is there until the next line.
        let layout = unsafe { pinned::layout(self.future) };
        let _memory = GiveBack(&self.allocator, self.future.cast(), layout);
        // SAFETY: the future is ours, and is not used again.
        unsafe { self.future.drop_in_place() };
    }
}

/// The allocator of the chain that runs now.
#[inline]
fn current_allocator() -> FrameAllocator {
    Frame::current(|frame| match frame {
        Some(frame) => frame.host().env().allocator().clone(),
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
