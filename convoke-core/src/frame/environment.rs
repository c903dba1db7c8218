//! The environment of what is started in a frame: that of the task, under the changes that hold for a part of it.

use super::Frame;
use crate::env::{Local, Overlay};
use crate::{Env, FrameAllocator};

impl<'a> Frame<'a> {
    /// Puts changes over the environment of the task, for what runs in this frame.
    #[inline]
    #[must_use]
    pub fn overlaid(mut self, overlay: Option<&'a Overlay>) -> Self {
        if overlay.is_some() {
            self.task.overlay = overlay;
        }
        self
    }

    /// Returns the changes to the environment of the task that hold in this frame, if there are any.
    #[inline]
    pub fn overlay(&self) -> Option<&'a Overlay> {
        self.task.overlay
    }

    /// Returns the allocator for the frames of tasks that are started in this frame.
    #[inline]
    pub fn allocator(&self) -> &'a FrameAllocator {
        match self.task.overlay {
            Some(overlay) => overlay.allocator(),
            None => self.task.owner.env().allocator(),
        }
    }

    /// Returns the value of a key in this frame.
    pub fn local<T: Send + Sync + 'static>(&self, key: &'static Local<T>) -> Option<&'a T> {
        match self.task.overlay {
            Some(overlay) => overlay.local(key),
            None => self.task.owner.env().local(key),
        }
    }

    /// Creates the environment of work that is started in this frame and has a life of its own: see
    /// [`Env::child`]. Its stop token is that of the task's parent.
    pub fn child_env(&self) -> Env {
        let env = self.task.owner.env();
        match self.task.overlay {
            Some(overlay) => env.overlaid(overlay).child(),
            None => env.child(),
        }
    }
}
