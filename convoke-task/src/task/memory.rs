//! The memory of a task: allocation and deallocation. The two built-in allocators are known by a tag; any
//! other is stored behind the task, where the thread that frees the task finds it.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::future::Future;
use core::mem::ManuallyDrop;
use core::panic::Location;
use core::pin::Pin;
use core::ptr::NonNull;

use convoke_core::env::FrameAllocator;
use convoke_core::raw::Header;

use super::cell::{Cell, Ending};
use super::cold::ColdState;
use super::header::TaskHeader;
use super::new_task::{NewTask, Spawnable};
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
pub(super) struct Vacant<F: Future, M> {
    cell: NonNull<Cell<F, M>>,
    kind: NonNull<TaskKind>,
    memory: Memory,
}

impl<F: Future, M: Ending<F::Output>> Vacant<F, M> {
    /// Allocates memory for a task under this parent link, spawned at `location`. Returns `None` if the
    /// allocator has none.
    #[inline]
    pub(super) fn allocate(link: Pin<&ParentLink>, location: &'static Location<'static>) -> Option<Self> {
        let kind = Sites::find(link, Cell::<F, M>::WORK, location)?;
        let allocator = link.get_ref().env().allocator();
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

    /// Creates the task, queued: the caller posts it, or runs it.
    ///
    /// # Safety
    /// `link` is the parent link that the memory was allocated for; and the contracts of [`NewTask::create`].
    #[inline]
    pub(super) unsafe fn fill(
        self,
        future: Spawnable<F>,
        ending: M,
        link: Pin<&ParentLink>,
    ) -> NewTask<F, M> {
        let this = ManuallyDrop::new(self);
        let (future, local) = future.into_parts();
        let cell = this.cell;
        let state = if M::HANDLE { State::queued_with_handle() } else { State::queued(M::REFERENCES) };
        // SAFETY: rules 3 and 6 of the header: `allocate` found the kind among the spawn sites of this link,
        // so it is alive for as long as the header leads to it.
        let runnable = unsafe { Header::of_kind(this.kind.cast()) };
        let header = TaskHeader::new(runnable, state, link.home(), this.memory, local, M::ASKED_FOR);
        // SAFETY: the memory has the layout of this cell, and `self` is given up. The allocator stays behind
        // the task. The contract of this function is what a new task requires.
        unsafe {
            cell.write(Cell::new(header, ending, future));
            NewTask::new(cell, NonNull::from(link.get_ref()))
        }
    }
}

impl<F: Future, M> Drop for Vacant<F, M> {
    fn drop(&mut self) {
        // SAFETY: `allocate_elsewhere` stored the allocator there if the tag is `Own`. The memory came from it
        // with this layout, and was not filled.
        unsafe {
            let allocator = self.memory.allocator(|| Some(Cell::allocator_of(self.cell).read()));
            allocator.deallocate(self.cell.cast(), Cell::<F, M>::layout(self.memory));
        }
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

    /// Returns where the allocator is stored behind a task that was allocated with `layout(Own)`.
    fn allocator_of(cell: NonNull<Self>) -> NonNull<FrameAllocator> {
        cell.map_addr(|address| address.saturating_add(Self::ALLOCATOR_AT)).cast()
    }
}

/// The right of the one thread that has a task to itself whose body is gone: to destroy it.
pub(super) struct Vacated<F: Future, M>(NonNull<Cell<F, M>>);

impl<F: Future, M> Vacated<F, M> {
    /// Takes a task whose body is gone.
    ///
    /// # Safety
    /// This thread has the task to itself, its body is gone, and it is not used afterwards.
    #[inline]
    pub(super) unsafe fn new(cell: NonNull<Cell<F, M>>) -> Self {
        Self(cell)
    }

    /// Drops all but the body, and frees the memory and that of the cold state.
    #[inline]
    pub(super) fn destroy(self) {
        // SAFETY: this thread has the task to itself. A plain task came from the recycling allocator and has
        // no cold state.
        unsafe {
            if !self.0.cast::<TaskHeader>().as_ref().is_plain() {
                return self.destroy_with_more();
            }
            self.0.drop_in_place();
            FrameAllocator::recycling().deallocate(self.0.cast(), Cell::<F, M>::layout(Memory::Recycling));
        }
    }

    /// Destroys a task that has a cold state, or another allocator than the default.
    #[cold]
    fn destroy_with_more(self) {
        let cell = self.0;
        // SAFETY: this thread has the task to itself. The allocator is stored behind the task if the tag is
        // `Own`, and is read once. The cold state came from the same allocator, and was cleared when the
        // future was gone.
        unsafe {
            let header = cell.cast::<TaskHeader>().as_ref();
            let memory = header.memory();
            let allocator = memory.allocator(|| Some(Cell::allocator_of(cell).read()));
            if header.cold().is_some() {
                ColdState::free(header.cold_address(), &allocator);
            }
            cell.drop_in_place();
            allocator.deallocate(cell.cast(), Cell::<F, M>::layout(memory));
        }
    }
}
