//! What tasks have in common that were started at one site: the code that runs them, where they hang, and where that was
//! written. They share one pointer to it, and what is shared lies with the parent.
//!
//! 1. A site is in the list of its place before a task leads to it, and stays as it is until the place is gone. A task that has
//!    left its place does not lead to a site any more: rule 6 of the header.
//! 2. Sites are added from any thread, by who has made them; of `first` each belongs to who has taken its number.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::fmt;
use core::mem::MaybeUninit;
use core::panic::Location;
use core::ptr::{self, NonNull};

use convoke_core::env::FrameAllocator;
use convoke_core::raw::WorkKind;
use convoke_core::raw::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::cold::ColdState;
use super::parent_link::ParentLink;

/// What a task leads to: that of its site, or a copy of its own, in its side table.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct TaskKind {
    /// First, so that its address is ours.
    pub(super) work: WorkKind,
    /// Null for a task that has left.
    pub(super) place: *const ParentLink,
    pub(super) location: &'static Location<'static>,
    /// What it lies in, if that is a side table.
    pub(super) side: Option<NonNull<ColdState>>,
}

impl TaskKind {
    /// That of tasks which have left their place.
    pub(super) const fn left(work: WorkKind) -> Self {
        Self { work, place: ptr::null(), location: Location::caller(), side: None }
    }
}

/// Tasks of one type, started by one line of the program, in one place.
struct SpawnSite {
    kind: TaskKind,
    /// The one that was added before, or `NOWHERE`.
    next: *mut SpawnSite,
}

// SAFETY: rule 1: it is not changed.
unsafe impl Sync for SpawnSite {}

/// The end of every list. No task is like it.
static NOWHERE: SpawnSite =
    SpawnSite { kind: TaskKind::left(WorkKind::new(|_, _| {})), next: ptr::null_mut() };

/// The sites of one place, the newest first. Mostly there is one, and most often the newest is asked for.
pub(super) struct Sites {
    newest: AtomicPtr<SpawnSite>,
    /// Room for the first of them; the others are allocated.
    first: UnsafeCell<[MaybeUninit<SpawnSite>; FIRST]>,
    /// How many of those were taken, or more.
    taken: AtomicU32,
}

/// A scope with more sites allocates.
const FIRST: usize = 2;

impl Sites {
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            newest: AtomicPtr::new(ptr::from_ref(&NOWHERE).cast_mut()),
            first: UnsafeCell::new([const { MaybeUninit::uninit() }; FIRST]),
            taken: AtomicU32::new(0),
        }
    }

    /// The site of tasks that this code runs and that are started there, made now if it is the first. `None` if there is no
    /// memory.
    ///
    /// # Safety
    /// These are the sites of this place, which does not move any more.
    #[inline]
    pub(super) unsafe fn find(
        place: &ParentLink,
        work: WorkKind,
        location: &'static Location<'static>,
    ) -> Option<NonNull<TaskKind>> {
        let newest = place.sites().newest.load(Ordering::Acquire);
        // SAFETY: rule 1: what is in the list is there for as long as its place, which the caller has.
        if let Some(found) = unsafe { SpawnSite::of(newest, work, location) } {
            return Some(found);
        }
        // SAFETY: these are the sites of this place, which does not move: `find`'s caller.
        unsafe { Self::find_or_add(place, newest, work, location) }
    }

    /// Searches the rest of the list, and adds a site if there is none. Pointers to sites stay raw: they lead back to the memory
    /// that `free` gives to the allocator, which a reference to a `SpawnSite` does not.
    ///
    /// # Safety
    /// As for `find`; `newest` was loaded from these sites.
    #[cold]
    unsafe fn find_or_add(
        place: &ParentLink,
        mut newest: *mut SpawnSite,
        work: WorkKind,
        location: &'static Location<'static>,
    ) -> Option<NonNull<TaskKind>> {
        // SAFETY: rule 1; the list ends with `NOWHERE`, whose `next` is null.
        let mut site = unsafe { (*newest).next };
        while !site.is_null() {
            // SAFETY: rule 1: it is in the list.
            unsafe {
                if let Some(found) = SpawnSite::of(site, work, location) {
                    return Some(found);
                }
                site = (*site).next;
            }
        }
        let sites = place.sites();
        let site = sites.room(place.env().allocator())?;
        let kind = TaskKind { work, place, location, side: None };
        loop {
            // SAFETY: the room is ours until it is in the list: rule 2.
            unsafe { site.write(SpawnSite { kind, next: newest }) };
            // Two of the same are none too many: who adds one while another does, may.
            match sites.newest.compare_exchange(newest, site.as_ptr(), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(site.cast()),
                Err(now) => newest = now,
            }
        }
    }

    fn room(&self, allocator: &FrameAllocator) -> Option<NonNull<SpawnSite>> {
        let full = FIRST as u32;
        let mut taken = self.taken.load(Ordering::Relaxed);
        if taken < full {
            taken = self.taken.fetch_add(1, Ordering::Relaxed);
        }
        if taken >= full {
            return allocator.allocate(Layout::new::<SpawnSite>()).map(NonNull::cast);
        }
        // SAFETY: it is one of the array.
        NonNull::new(unsafe { self.first.get().cast::<SpawnSite>().add(taken as usize) })
    }

    /// Gives the memory back. A place that has no more than the first sites does not ask for the allocator.
    ///
    /// # Safety
    /// Called once, last; no task leads here any more, and the allocator is the one of `find`.
    pub(super) unsafe fn free<'a>(&mut self, allocator: impl Fn() -> &'a FrameAllocator) {
        let first = self.first.get().cast::<SpawnSite>();
        let is_first = |site: *mut SpawnSite| (first..first.wrapping_add(FIRST)).contains(&site);
        let mut site = self.newest.load(Ordering::Acquire);
        while !ptr::eq(site, &NOWHERE) {
            // SAFETY: all that are in the list are there, and each is freed once.
            unsafe {
                let next = (*site).next;
                if !is_first(site) {
                    let memory = NonNull::new_unchecked(site.cast());
                    allocator().deallocate(memory, Layout::new::<SpawnSite>());
                }
                site = next;
            }
        }
    }
}

impl SpawnSite {
    /// The kind of this site, if its tasks are run by this code and started at this line.
    ///
    /// # Safety
    /// The site is in a list, and its place is there: rule 1.
    #[inline]
    unsafe fn of(
        site: *mut Self,
        work: WorkKind,
        location: &'static Location<'static>,
    ) -> Option<NonNull<TaskKind>> {
        // SAFETY: rule 1: the site is there and is not changed. A pointer into it is not null.
        unsafe {
            let kind = &raw mut (*site).kind;
            ((*kind).work == work && ptr::eq((*kind).location, location))
                .then(|| NonNull::new_unchecked(kind))
        }
    }
}

impl fmt::Debug for TaskKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskKind").finish_non_exhaustive()
    }
}
