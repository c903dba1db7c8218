//! The memory of a task: allocation and deallocation. The two built-in allocators are known by a tag; any
//! other is stored behind the task, where the thread that frees the task finds it.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::future::Future;
use core::mem::ManuallyDrop;
use core::panic::Location;
use core::pin::Pin;
use core::ptr::NonNull;

use convoke_core::Panic;
use convoke_core::env::FrameAllocator;
use convoke_core::raw::{Header, WorkKind};

use super::cell::Cell;
use super::cold::ColdState;
use super::ending::Ending;
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
    /// Returns the kind of this allocator.
    pub(super) fn of(allocator: &FrameAllocator) -> Self {
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

/// The part of a task's type that its memory depends on. What is done with it here is compiled once, and not for
/// every type of task.
#[derive(Clone, Copy)]
pub(super) struct CellType {
    /// The layout of header, ending and body.
    layout: Layout,
    /// Drops all but the body in place.
    drop: unsafe fn(NonNull<TaskHeader>),
}

impl<F: Future, M> Cell<F, M> {
    pub(super) const TYPE: CellType = CellType { layout: Layout::new::<Self>(), drop: Self::drop_but_body };

    /// Drops all but the body in place: a union drops nothing.
    ///
    /// # Safety
    /// `task` is a `Self`, and this thread has it to itself. It is not used afterwards.
    unsafe fn drop_but_body(task: NonNull<TaskHeader>) {
        // SAFETY: the contract of this function.
        unsafe { core::ptr::drop_in_place(task.as_ptr() as *mut Self) };
    }
}

/// Memory for a task that does not exist yet.
pub(super) struct Vacant {
    cell: NonNull<TaskHeader>,
    kind: NonNull<TaskKind>,
    memory: Memory,
    of: CellType,
}

impl Vacant {
    /// Allocates memory for a task of this type under this parent link, run by `work` and spawned at `location`. Returns
    /// `None` if the allocator has none.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn allocate(
        of: CellType,
        work: WorkKind,
        link: Pin<&ParentLink>,
        location: &'static Location<'static>,
    ) -> Option<Self> {
        let kind = Sites::find(link, work, location)?;
        let memory = link.inherited().memory();
        let cell = if memory == Memory::Recycling {
            FrameAllocator::recycling().allocate(of.layout)?
        } else {
            of.allocate_elsewhere(link.get_ref().env().allocator(), memory)?
        };
        Some(Self { cell: cell.cast(), kind, memory, of })
    }

    /// Creates the task, queued: the caller posts it, or runs it.
    ///
    /// # Safety
    /// The memory was allocated for a task of this type, under `link`; and the contracts of [`NewTask::create`].
    #[inline]
    pub(super) unsafe fn fill<F: Future, M: Ending<F::Output>>(
        self,
        future: Spawnable<F>,
        ending: M,
        link: Pin<&ParentLink>,
    ) -> NewTask<F, M> {
        let Self { cell, kind, .. } = *ManuallyDrop::new(self);
        let Spawnable { future, local } = future;
        let state = if M::HANDLE { State::queued_with_handle() } else { State::queued(M::REFERENCES) };
        // SAFETY: rules 3 and 6 of the header: `allocate` found the kind among the spawn sites of this link,
        // so it is alive for as long as the header leads to it. The memory has the layout of this cell, and
        // `self` is given up. The allocator stays behind the task. The contract of this function is what a new
        // task requires.
        unsafe {
            let runnable = Header::of_kind(kind.cast());
            let header =
                TaskHeader::new(runnable, state, link.owner_id(), link.inherited(), local, M::ASKED_FOR);
            (cell.as_ptr() as *mut Cell<F, M>).write(Cell::new(header, ending, future));
            NewTask::new(cell)
        }
    }
}

impl Drop for Vacant {
    fn drop(&mut self) {
        // SAFETY: `allocate_elsewhere` stored the allocator there if the tag is `Own`. The memory came from it
        // with this layout, and was not filled.
        unsafe {
            let memory = self.cell.cast();
            let allocator = self.memory.allocator(|| Some(self.of.allocator_of(memory).read()));
            allocator.deallocate(memory, self.of.layout_in(self.memory));
        }
    }
}

impl CellType {
    /// Returns the layout of the task; and of the allocator behind it, if it is stored.
    #[inline]
    fn layout_in(self, memory: Memory) -> Layout {
        if memory != Memory::Own {
            return self.layout;
        }
        let size = self.allocator_at() + size_of::<FrameAllocator>();
        let align = self.layout.align().max(align_of::<FrameAllocator>());
        Layout::from_size_align(size, align).expect("a task fits into memory").pad_to_align()
    }

    fn allocator_at(self) -> usize {
        self.layout.size().next_multiple_of(align_of::<FrameAllocator>())
    }

    /// Returns where the allocator is stored behind a task that was allocated with `layout_in(Own)`.
    fn allocator_of(self, cell: NonNull<u8>) -> NonNull<FrameAllocator> {
        cell.map_addr(|address| address.saturating_add(self.allocator_at())).cast()
    }

    /// Allocates memory of another allocator than the default.
    #[cold]
    #[inline(never)]
    fn allocate_elsewhere(self, allocator: &FrameAllocator, memory: Memory) -> Option<NonNull<u8>> {
        let cell = allocator.allocate(self.layout_in(memory))?;
        if memory == Memory::Own {
            // SAFETY: `layout_in(Own)` has space for the allocator there, and nothing else uses the memory.
            unsafe { self.allocator_of(cell).write(allocator.clone()) };
        }
        Some(cell)
    }

    /// Destroys a task that has a cold state, or another allocator than the default.
    ///
    /// # Safety
    /// As for [`Vacated::new`]: `self` is the type of the task.
    #[cold]
    #[inline(never)]
    unsafe fn destroy_with_more(self, task: NonNull<TaskHeader>) {
        // SAFETY: `Vacated::destroy` has the task to itself. The allocator is stored behind the task if the tag
        // is `Own`, and is read once. The cold state came from the same allocator, and was cleared when the
        // future was gone.
        unsafe {
            let header = task.as_ref();
            let memory = header.memory();
            let allocator = memory.allocator(|| Some(self.allocator_of(task.cast()).read()));
            if header.cold().is_some() {
                ColdState::free(header.cold_address(), &allocator);
            }
            (self.drop)(task);
            allocator.deallocate(task.cast(), self.layout_in(memory));
        }
    }
}

/// The right of the one thread that has a task to itself whose body is gone: to destroy it.
pub(super) struct Vacated {
    task: NonNull<TaskHeader>,
    of: CellType,
}

impl Vacated {
    /// Takes a task whose body is gone.
    ///
    /// # Safety
    /// `of` is the type of the task. This thread has it to itself, its body is gone, and it is not used afterwards.
    #[inline]
    pub(super) unsafe fn new(task: NonNull<TaskHeader>, of: CellType) -> Self {
        Self { task, of }
    }

    /// Drops all but the body, and frees the memory and that of the cold state.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn destroy(self) {
        let Self { task, of } = self;
        // SAFETY: this thread has the task to itself, and `of` is its type. A plain task came from the recycling
        // allocator and has no cold state.
        unsafe {
            if !task.as_ref().is_plain() {
                return of.destroy_with_more(task);
            }
            (of.drop)(task);
            FrameAllocator::recycling().deallocate(task.cast(), of.layout);
        }
    }
}

/// Creates the panic of a task for which there was no memory.
#[inline]
pub(crate) fn no_memory<F>(location: &'static Location<'static>) -> Panic {
    no_memory_for(size_of::<F>(), location)
}

#[cold]
#[inline(never)]
fn no_memory_for(size: usize, location: &'static Location<'static>) -> Panic {
    Panic::new(format!(
        "the frame allocator has no memory left for the task at {location}, whose future has {size} bytes"
    ))
}
