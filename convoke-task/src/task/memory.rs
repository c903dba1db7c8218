//! The memory of a task: where it comes from, and goes back to. The usual allocator is reached without a question; any other is
//! kept behind the task, to be found when that ends, on whatever thread.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::future::Future;
use core::mem::ManuallyDrop;
use core::panic::Location;
use core::ptr::NonNull;

use convoke_core::env::FrameAllocator;

use super::cell::{Cell, Ending};
use super::cold::ColdState;
use super::header::TaskHeader;
use super::parent_link::ParentLink;
use super::spawn_site::{Sites, TaskKind};
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
    kind: NonNull<TaskKind>,
    memory: Memory,
}

impl<F: Future, M: Ending<F::Output>> Vacant<F, M> {
    /// Memory from the allocator of the place, if it has some, for a task that is started there.
    ///
    /// # Safety
    /// The place does not move any more.
    #[inline]
    pub(crate) unsafe fn allocate(place: &ParentLink, location: &'static Location<'static>) -> Option<Self> {
        // SAFETY: the caller's.
        let kind = unsafe { Sites::find(place, Cell::<F, M>::WORK, location)? };
        let allocator = place.env().allocator();
        if *allocator != FrameAllocator::recycling() {
            return Self::allocate_elsewhere(allocator, kind);
        }
        let cell = FrameAllocator::recycling().allocate(Cell::<F, M>::layout(Memory::Recycling))?.cast();
        Some(Self { cell, kind, memory: Memory::Recycling })
    }

    #[cold]
    fn allocate_elsewhere(allocator: &FrameAllocator, kind: NonNull<TaskKind>) -> Option<Self> {
        let memory = Memory::of(allocator);
        let cell = allocator.allocate(Cell::<F, M>::layout(memory))?.cast();
        if memory == Memory::Own {
            // SAFETY: the memory is ours, and has room for it there.
            unsafe { Cell::allocator_of(cell).write(allocator.clone()) };
        }
        Some(Self { cell, kind, memory })
    }

    /// Makes the task. It is queued: the caller posts its runnable, or runs it.
    ///
    /// # Safety
    /// The place is the one that the memory was allocated for, and outlives the task's stay. If the task is `local`, this
    /// thread is at the home of the place's executor; else the future is `Send`. What the future and the ending borrow
    /// outlives the task.
    #[inline]
    pub(crate) unsafe fn fill(
        self,
        future: F,
        ending: M,
        place: &ParentLink,
        local: bool,
    ) -> NonNull<TaskHeader> {
        let this = ManuallyDrop::new(self);
        let cell = this.cell;
        let state = if M::HANDLE { State::queued_with_handle() } else { State::queued(M::REFERENCES) };
        // SAFETY: the kind was found there.
        let header = unsafe { TaskHeader::new(this.kind, state, place.home(), this.memory, local) };
        // SAFETY: the memory fits and is ours. We are given up here; the allocator stays behind the task.
        unsafe { cell.write(Cell::new(header, ending, future)) };
        cell.cast()
    }
}

impl<F: Future, M> Drop for Vacant<F, M> {
    fn drop(&mut self) {
        // SAFETY: it stands there if it is neither of the usual ones.
        let allocator = self.memory.allocator(|| Some(unsafe { Cell::allocator_of(self.cell).read() }));
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

    /// Drops all but the body, and gives the memory back, with that of the side table.
    ///
    /// # Safety
    /// The task is the caller's alone, and its body is gone.
    #[inline]
    pub(super) unsafe fn destroy(task: NonNull<TaskHeader>) {
        let cell = task.cast::<Self>();
        // SAFETY: the caller's; the allocator is the one it was made with.
        unsafe {
            if !task.as_ref().is_plain() {
                return Self::destroy_with_more(cell);
            }
            cell.drop_in_place();
            FrameAllocator::recycling().deallocate(cell.cast(), Self::layout(Memory::Recycling));
        }
    }

    /// # Safety
    /// As for `destroy`.
    #[cold]
    unsafe fn destroy_with_more(cell: NonNull<Self>) {
        // SAFETY: as in `destroy`. The side table came from the same allocator: that of the place. It was cleared when the body
        // was gone.
        unsafe {
            let header = cell.cast::<TaskHeader>().as_ref();
            let memory = header.memory();
            let allocator = memory.allocator(|| Some(Self::allocator_of(cell).read()));
            if header.side().is_some() {
                ColdState::free(header.side_address(), &allocator);
            }
            cell.drop_in_place();
            allocator.deallocate(cell.cast(), Self::layout(memory));
        }
    }
}
