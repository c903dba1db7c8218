//! The memory of a task: where it comes from, and goes back to. The usual allocator is reached without a question; any other is
//! kept behind the task, to be found when that ends, on whatever thread.

use core::alloc::Layout;
use core::future::Future;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use convoke_core::env::FrameAllocator;
use convoke_core::raw::{Header, WorkKind};

use super::cell::{Cell, Ending, Making};
use super::header::TaskHeader;
use super::place::Place;
use super::state::State;

/// Whose memory a task lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// That of the default allocator.
    Recycling,
    /// The system's.
    System,
    /// That of an allocator that stands behind the task.
    Own,
}

impl Memory {
    #[inline]
    fn of(allocator: &FrameAllocator) -> Self {
        if *allocator == FrameAllocator::recycling() {
            Self::Recycling
        } else if *allocator == FrameAllocator::system() {
            Self::System
        } else {
            Self::Own
        }
    }

    #[inline]
    fn allocator(self, own: impl FnOnce() -> Option<FrameAllocator>) -> FrameAllocator {
        match self {
            Self::Recycling => FrameAllocator::recycling(),
            Self::System => FrameAllocator::system(),
            Self::Own => own().unwrap_or_default(),
        }
    }
}

/// Memory for a task that is not made yet.
pub(crate) struct Vacant<F: Future, M> {
    cell: NonNull<Cell<F, M>>,
    memory: Memory,
    /// If it is neither of the usual ones.
    allocator: Option<FrameAllocator>,
}

impl<F: Future, M: Ending<F::Output>> Vacant<F, M> {
    /// Memory from the allocator of the place, if it has some.
    #[inline]
    pub(crate) fn allocate(place: &Place) -> Option<Self> {
        let allocator = place.env().allocator();
        if *allocator != FrameAllocator::recycling() {
            return Self::allocate_elsewhere(allocator);
        }
        let cell = FrameAllocator::recycling().allocate(Cell::<F, M>::layout(Memory::Recycling))?.cast();
        Some(Self { cell, memory: Memory::Recycling, allocator: None })
    }

    #[cold]
    fn allocate_elsewhere(allocator: &FrameAllocator) -> Option<Self> {
        let memory = Memory::of(allocator);
        let own = (memory == Memory::Own).then(|| allocator.clone());
        let cell = allocator.allocate(Cell::<F, M>::layout(memory))?.cast();
        Some(Self { cell, memory, allocator: own })
    }

    /// Makes the task. It is queued: the caller posts its runnable, or runs it.
    ///
    /// # Safety
    /// The place is the one that the memory was allocated for, and outlives the task's stay. If the task is `local`, this
    /// thread is at the home of the place's executor; else the future is `Send`. What the future and the ending borrow
    /// outlives the task.
    #[inline]
    pub(crate) unsafe fn fill(self, future: F, ending: M, making: Making) -> NonNull<TaskHeader> {
        let this = ManuallyDrop::new(self);
        let cell = this.cell;
        // SAFETY: the caller's.
        let home = unsafe { making.place.as_ref() }.home();
        let state = if M::HANDLE { State::queued_with_handle() } else { State::queued(M::REFERENCES) };
        let header =
            TaskHeader::new(Header::new(const { &WorkKind::new(Cell::<F, M>::call) }), state, home, making);
        // SAFETY: the memory fits and is ours. We are given up here, and the allocator is not used again.
        unsafe {
            cell.write(Cell::new(header, ending, future));
            if this.memory != Memory::Recycling {
                TaskHeader::set_memory(cell.cast(), this.memory);
                if let Some(allocator) = (&raw const this.allocator).read() {
                    Cell::allocator_of(cell).write(allocator);
                }
            }
        }
        cell.cast()
    }
}

impl<F: Future, M> Drop for Vacant<F, M> {
    fn drop(&mut self) {
        let allocator = self.memory.allocator(|| self.allocator.take());
        // SAFETY: the memory came from there, and was not filled.
        unsafe { allocator.deallocate(self.cell.cast(), Cell::<F, M>::layout(self.memory)) };
    }
}

impl<F: Future, M> Cell<F, M> {
    /// Header, ending and body; behind them the allocator, unless it is one of the usual ones.
    #[inline]
    fn layout(memory: Memory) -> Layout {
        let layout = Layout::new::<Self>();
        if memory != Memory::Own {
            return layout;
        }
        let size = Self::ALLOCATOR_AT + size_of::<FrameAllocator>();
        let align = layout.align().max(align_of::<FrameAllocator>());
        Layout::from_size_align(size, align).expect("a task fits into memory").pad_to_align()
    }

    const ALLOCATOR_AT: usize = size_of::<Self>().next_multiple_of(align_of::<FrameAllocator>());

    /// # Safety
    /// `cell` was made with room for it.
    unsafe fn allocator_of(cell: NonNull<Self>) -> NonNull<FrameAllocator> {
        // SAFETY: `layout` made room for it there.
        unsafe { cell.cast::<u8>().add(Self::ALLOCATOR_AT).cast() }
    }

    /// Drops all but the body, and gives the memory back.
    ///
    /// # Safety
    /// The task is the caller's alone, and its body is gone.
    #[inline]
    pub(super) unsafe fn destroy(task: NonNull<TaskHeader>) {
        let cell = task.cast::<Self>();
        // SAFETY: the caller's; the allocator is the one it was made with.
        unsafe {
            if task.as_ref().memory() != Memory::Recycling {
                return Self::destroy_elsewhere(cell);
            }
            cell.drop_in_place();
            FrameAllocator::recycling().deallocate(cell.cast(), Self::layout(Memory::Recycling));
        }
    }

    /// # Safety
    /// As for `destroy`.
    #[cold]
    unsafe fn destroy_elsewhere(cell: NonNull<Self>) {
        // SAFETY: as in `destroy`.
        unsafe {
            let memory = cell.cast::<TaskHeader>().as_ref().memory();
            let allocator = memory.allocator(|| Some(Self::allocator_of(cell).read()));
            cell.drop_in_place();
            allocator.deallocate(cell.cast(), Self::layout(memory));
        }
    }
}
