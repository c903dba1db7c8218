//! The kinds of handles: one that may go to any thread, and a cheaper one that stays on the thread of its
//! child.

use core::marker::PhantomData;
use core::panic::Location;

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

    /// The identity of the waker in the child, as the handle remembers it.
    #[doc(hidden)]
    type Stored: From<WakerMark> + Into<Option<WakerMark>> + Copy + Default;
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
    type Location = &'static Location<'static>;
    type Stored = Option<WakerMark>;
}

impl HandleKind for SameThread {
    const LOCAL: bool = true;
    type Location = NoLocation;
    type Stored = NoMark;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Anywhere {}
    impl Sealed for super::SameThread {}
}
