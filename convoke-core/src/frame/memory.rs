//! Memory of the running task: the frame allocator of the current frame, and the constructors of stop sources and
//! locals, which take their memory from it.

use core::pin::Pin;
use std::time::Instant;

use super::Frame;
use crate::env::{Changes, Local};
use crate::frames::frame_arc::FrameArc;
use crate::frames::frame_box::FrameBox;
use crate::frames::frame_vec::{FrameMemory, FrameVec};
use crate::{FrameAllocator, StopRef, StopSource, StopToken};

/// Returns the frame allocator of the running task; outside a task, the default.
#[inline]
pub fn current_allocator() -> FrameAllocator {
    Frame::current(|frame| match frame {
        Some(frame) => frame.allocator().clone(),
        None => FrameAllocator::default(),
    })
}

impl<T> FrameArc<T> {
    /// Moves a value into memory of the running task, or of the global allocator if the task's has none left.
    pub fn in_task(value: T) -> Self {
        Self::new_in(&current_allocator(), value)
    }
}

impl<T> FrameBox<T> {
    /// Moves a value into memory of the running task, or of the global allocator if the task's has none left.
    pub fn in_task(value: T) -> Self {
        Self::new_in(current_allocator(), value)
    }

    /// Moves a value into memory of the running task, as [`in_task`](FrameBox::in_task) does, and pins it there.
    pub fn pin_in_task(value: T) -> Pin<Self> {
        Self::pin_in(current_allocator(), value)
    }
}

impl FrameMemory {
    /// Creates an empty vector in memory of the running task.
    pub fn vec_in_task<T>() -> FrameVec<T> {
        Self::vec(current_allocator())
    }
}

/// The state of a source lies in memory of the task that creates it.
impl StopSource {
    /// Creates a source without a parent and without a deadline.
    pub fn new() -> Self {
        Self::new_in(&current_allocator(), None)
    }

    /// Creates a source that announces a deadline to everything below it. The source has no clock: the code
    /// that sets the deadline also requests the stop.
    pub fn with_deadline(deadline: Instant) -> Self {
        Self::new_in(&current_allocator(), Some(deadline))
    }

    /// Creates a source that stops when `parent` does. It inherits the parent's deadline.
    pub fn child_of(parent: &StopToken) -> Self {
        Self::linked_in(&current_allocator(), parent, None)
    }

    /// Creates a source that stops when `parent` does, with a deadline. The earlier one of both deadlines
    /// counts.
    pub fn child_with_deadline(parent: &StopToken, deadline: Instant) -> Self {
        Self::linked_in(&current_allocator(), parent, Some(deadline))
    }
}

impl Default for StopSource {
    fn default() -> Self {
        Self::new()
    }
}

impl StopToken {
    /// Creates a source that stops when this token's source does, but not the other way round.
    pub fn child(&self) -> StopSource {
        StopSource::child_of(self)
    }
}

impl StopRef<'_> {
    /// Returns an owned token. If the source lies inside an operation, the first call creates a linked source
    /// in memory of the running task, which stops when that source does.
    pub fn to_token(self) -> StopToken {
        self.to_token_in(&current_allocator())
    }
}

impl Changes {
    /// Sets the value of a key. The value lies in memory of the task that calls this.
    pub fn local<T: Send + Sync + 'static>(self, key: &'static Local<T>, value: T) -> Self {
        self.local_in(&current_allocator(), key, value)
    }
}
