//! The kinds of handles: one that may go to any thread, and a cheaper one that stays on the thread of its
//! child.

use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::panic::Location;
use core::task::Waker;

use convoke_core::raw::WakerMark;

/// Kind of a [`Handle`](crate::scope::Handle): it may go to any thread, or it stays on the thread of its
/// child, which is cheaper.
pub trait HandleKind: sealed::Sealed {
    /// True if the handle stays on the owner thread of its child.
    #[doc(hidden)]
    const LOCAL: bool;

    /// The spawn site that the child stores for its handle.
    #[doc(hidden)]
    type Location: From<&'static Location<'static>> + Into<Option<&'static Location<'static>>> + Copy;

    /// The storage in the child for the waker of the handle.
    #[doc(hidden)]
    type Slot: WakerSlot;

    /// The identity of the waker in the child, as the handle remembers it.
    #[doc(hidden)]
    type Stored: From<WakerMark> + Into<Option<WakerMark>> + Copy + Default;
}

/// Storage for a waker.
#[doc(hidden)]
pub trait WakerSlot {
    /// Creates an empty one.
    fn empty() -> Self;

    /// Returns the waker.
    fn waker(&mut self) -> &mut Option<Waker>;
}

impl WakerSlot for Option<Waker> {
    #[inline]
    fn empty() -> Self {
        None
    }

    #[inline]
    fn waker(&mut self) -> &mut Option<Waker> {
        self
    }
}

/// Storage without a destructor: a local handle takes its waker back when it is dropped, and the child takes it before it
/// wakes. So it is empty when the child is freed.
#[doc(hidden)]
#[derive(Debug)]
pub struct EmptiedSlot(ManuallyDrop<Option<Waker>>);

impl WakerSlot for EmptiedSlot {
    #[inline]
    fn empty() -> Self {
        Self(ManuallyDrop::new(None))
    }

    #[inline]
    fn waker(&mut self) -> &mut Option<Waker> {
        &mut self.0
    }
}

/// No stored spawn site: a local handle reads the header, on the one thread that could end the child meanwhile.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct NoLocation;

impl From<&'static Location<'static>> for NoLocation {
    #[inline]
    fn from(_: &'static Location<'static>) -> Self {
        Self
    }
}

impl From<NoLocation> for Option<&'static Location<'static>> {
    fn from(_: NoLocation) -> Self {
        None
    }
}

/// No remembered waker: a local handle reads the one in the child, on the one thread that could take it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMark;

impl From<WakerMark> for NoMark {
    #[inline]
    fn from(_: WakerMark) -> Self {
        Self
    }
}

impl From<NoMark> for Option<WakerMark> {
    #[inline]
    fn from(_: NoMark) -> Self {
        None
    }
}

/// Kind of a handle that may go to any thread.
#[derive(Debug)]
pub struct Anywhere(());

/// Kind of a handle that stays on the owner thread of its child.
#[derive(Debug)]
pub struct SameThread(PhantomData<*mut ()>);

impl HandleKind for Anywhere {
    const LOCAL: bool = false;
    type Slot = Option<Waker>;
    type Location = &'static Location<'static>;
    type Stored = Option<WakerMark>;
}

impl HandleKind for SameThread {
    const LOCAL: bool = true;
    type Slot = EmptiedSlot;
    type Location = NoLocation;
    type Stored = NoMark;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Anywhere {}
    impl Sealed for super::SameThread {}
}
