//! A queue in memory of a frame allocator, first in, first out.

use core::fmt;

use convoke_core::raw::{FrameMemory, FrameVec};

/// A queue in memory of the task that creates it. Two vectors: one is filled, the other, which is in reverse order, is
/// emptied. So each item is moved once.
pub(crate) struct FrameQueue<T> {
    incoming: FrameVec<T>,
    outgoing: FrameVec<T>,
}

impl<T> FrameQueue<T> {
    /// Creates an empty queue.
    pub(crate) fn in_task() -> Self {
        Self { incoming: FrameMemory::vec_in_task(), outgoing: FrameMemory::vec_in_task() }
    }

    /// Adds an item at the end.
    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        self.incoming.push(item);
    }

    /// Returns the part that items are added to, the oldest first.
    #[inline]
    pub(crate) fn incoming(&mut self) -> &mut FrameVec<T> {
        &mut self.incoming
    }

    /// Takes the first item.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.outgoing.is_empty() {
            // Asked at the end of each round, and then there is nothing to swap.
            if self.incoming.is_empty() {
                return None;
            }
            core::mem::swap(&mut self.incoming, &mut self.outgoing);
            self.outgoing.reverse();
        }
        self.outgoing.pop()
    }

    /// Returns true if there is no item.
    pub(crate) fn is_empty(&self) -> bool {
        self.incoming.is_empty() && self.outgoing.is_empty()
    }
}

impl<T> fmt::Debug for FrameQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.incoming.len() + self.outgoing.len();
        f.debug_struct("FrameQueue").field("len", &len).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    #[test]
    fn items_come_out_in_order_and_a_queue_that_is_never_empty_does_not_grow() {
        let (mut queue, mut expected) = (FrameQueue::in_task(), 0);
        queue.push(0);
        for n in 1..1000 {
            queue.incoming().extend([2 * n - 1, 2 * n]);
            for _ in 0..2 {
                assert_eq!(queue.pop(), Some(expected));
                expected += 1;
            }
            assert!(!queue.is_empty() && queue.incoming.capacity() + queue.outgoing.capacity() <= 16);
        }
        assert_eq!((queue.pop(), queue.pop()), (Some(expected), None));
        assert!(queue.is_empty());
    }
}
