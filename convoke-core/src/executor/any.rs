//! The functions of an executor that are called rarely, behind a pointer: for erased executors, and for wrappers,
//! which say once which executor they wrap.

use core::any::{Any, type_name};

use super::{Executor, Timers};
use crate::FrameAllocator;

/// An executor of any type, as a wrapper names the one that it wraps: see [`Executor::wraps`]. Every executor is
/// one.
pub trait AnyExecutor: sealed::Sealed {
    /// Calls [`Executor::parallelism`].
    fn parallelism(&self) -> usize;

    /// Calls [`Executor::timers`].
    fn timers(&self) -> Option<&dyn Timers>;

    /// Calls [`Executor::context`].
    fn context(&self) -> Option<&(dyn Any + Send + Sync)>;

    /// Calls [`Executor::allocator`].
    fn allocator(&self) -> FrameAllocator;

    /// Calls [`Executor::work_began`].
    fn work_began(&self);

    /// Calls [`Executor::work_ended`].
    fn work_ended(&self);

    #[doc(hidden)]
    fn as_any(&self) -> &dyn Any;

    #[doc(hidden)]
    fn is_equal(&self, other: &dyn Any) -> bool;

    #[doc(hidden)]
    fn type_name(&self) -> &'static str;
}

mod sealed {
    pub trait Sealed {}

    impl<E: super::Executor> Sealed for E {}
}

impl<E: Executor> AnyExecutor for E {
    fn parallelism(&self) -> usize {
        Executor::parallelism(self)
    }

    fn timers(&self) -> Option<&dyn Timers> {
        Executor::timers(self)
    }

    fn context(&self) -> Option<&(dyn Any + Send + Sync)> {
        Executor::context(self)
    }

    fn allocator(&self) -> FrameAllocator {
        Executor::allocator(self)
    }

    fn work_began(&self) {
        Executor::work_began(self);
    }

    fn work_ended(&self) {
        Executor::work_ended(self);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_equal(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }

    fn type_name(&self) -> &'static str {
        type_name::<E>()
    }
}
