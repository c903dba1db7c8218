//! The memory of a task: allocation and deallocation. The two built-in allocators are known by a tag; any
//! other is stored behind the task, where the thread that frees the task finds it.

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

/// The allocator that a task's memory came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// The default, recycling allocator.
    Recycling,
    /// The system's allocator.
    System,
    /// An allocator that is stored behind the task.
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

/// Memory for a task that does not exist yet.
pub(crate) struct Vacant<F: Future, M> {
    cell: NonNull<Cell<F, M>>,
    kind: NonNull<TaskKind>,
    memory: Memory,
}

impl<F: Future, M: Ending<F::Output>> Vacant<F, M> {
    /// Allocates memory for a task under this parent link, spawned at `location`. Returns `None` if the
    /// allocator has none.
    ///
    /// # Safety
    /// The parent link does not move any more.
    #[inline]
    pub(crate) unsafe fn allocate(link: &ParentLink, location: &'static Location<'static>) -> Option<Self> {
        // SAFETY: the link does not move any more: the caller's promise.
        let kind = unsafe { Sites::find(link, Cell::<F, M>::WORK, location)? };
        let allocator = link.env().allocator();
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
            // SAFETY: `layout(Own)` has space for the allocator there, and nothing else uses the memory.
            unsafe { Cell::allocator_of(cell).write(allocator.clone()) };
        }
        Some(Self { cell, kind, memory })
    }

    /// Creates the task, queued: the caller posts its runnable, or runs it.
    ///
    /// # Safety
    /// `link` is the parent link that the memory was allocated for, and stays until the task has left. If the
    /// task is `local`, this is the owner thread of the link's executor; else the future is `Send`. What the
    /// future and the ending borrow outlives the task.
    #[inline]
    pub(crate) unsafe fn fill(
        self,
        future: F,
        ending: M,
        link: &ParentLink,
        local: bool,
    ) -> NonNull<TaskHeader> {
        let this = ManuallyDrop::new(self);
        let cell = this.cell;
        let state = if M::HANDLE { State::queued_with_handle() } else { State::queued(M::REFERENCES) };
        // SAFETY: `allocate` found the kind among the spawn sites of this link.
        let header = unsafe { TaskHeader::new(this.kind, state, link.home(), this.memory, local) };
        // SAFETY: the memory has the layout of this cell, and `self` is given up. The allocator stays behind
        // the task.
        unsafe { cell.write(Cell::new(header, ending, future)) };
        cell.cast()
    }
}

impl<F: Future, M> Drop for Vacant<F, M> {
    fn drop(&mut self) {
        // SAFETY: `allocate_elsewhere` stored it there if the tag is `Own`.
        let allocator = self.memory.allocator(|| Some(unsafe { Cell::allocator_of(self.cell).read() }));
        // SAFETY: the memory came from this allocator with this layout, and was not filled.
        unsafe { allocator.deallocate(self.cell.cast(), Cell::<F, M>::layout(self.memory)) };
    }
}

impl<F: Future, M> Cell<F, M> {
    /// Returns the layout of header, ending and body; and of the allocator behind them, if it is stored.
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

    /// Returns where the allocator is stored behind a task.
    ///
    /// # Safety
    /// `cell` was allocated with `layout(Own)`.
    unsafe fn allocator_of(cell: NonNull<Self>) -> NonNull<FrameAllocator> {
        // SAFETY: `layout(Own)` extends past this offset.
        unsafe { cell.cast::<u8>().add(Self::ALLOCATOR_AT).cast() }
    }

    /// Drops all but the body, and frees the memory and that of the cold state.
    ///
    /// # Safety
    /// The caller has the task to itself, the task is a `Self`, and its body is gone.
    #[inline]
    pub(super) unsafe fn destroy(task: NonNull<TaskHeader>) {
        let cell = task.cast::<Self>();
        // SAFETY: the caller has the task to itself. A plain task came from the recycling allocator and has
        // no cold state.
        unsafe {
            if !task.as_ref().is_plain() {
                return Self::destroy_with_more(cell);
            }
            cell.drop_in_place();
            FrameAllocator::recycling().deallocate(cell.cast(), Self::layout(Memory::Recycling));
        }
    }

    /// Drops a task that has a cold state, or another allocator than the default.
    ///
    /// # Safety
    /// As for `destroy`.
    #[cold]
    unsafe fn destroy_with_more(cell: NonNull<Self>) {
        // SAFETY: the caller has the task to itself: the promise of `destroy`. The cold state came from the
        // same allocator, and was cleared when the future was gone.
        unsafe {
            let header = cell.cast::<TaskHeader>().as_ref();
            let memory = header.memory();
            let allocator = memory.allocator(|| Some(Self::allocator_of(cell).read()));
            if header.cold().is_some() {
                ColdState::free(header.cold_address(), &allocator);
            }
            cell.drop_in_place();
            allocator.deallocate(cell.cast(), Self::layout(memory));
        }
    }
}
