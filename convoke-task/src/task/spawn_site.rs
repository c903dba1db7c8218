//! Spawn sites: what all tasks of one type, spawned by one line of the program under one parent, have in
//! common. Each task has one pointer to its site, which lies in the parent's memory.
//!
//! 1. A site is in the list of its parent link before a task leads to it, and does not change until the link
//!    is gone. A task that has left does not lead to a site any more: rule 6 of the header.
//! 2. Any thread may add a site; it alone writes the site before that is in the list. An element of `first`
//!    belongs to the thread that took its index.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::panic::Location;
use core::pin::Pin;
use core::ptr::{self, NonNull};

use convoke_core::env::FrameAllocator;
use convoke_core::raw::WorkKind;
use convoke_core::raw::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::cold::ColdState;
use super::parent_link::ParentLink;

/// The kind that a task's header leads to: that of its spawn site, or its own copy in its cold state.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct TaskKind {
    /// First, so that a pointer to the work kind is a pointer to this.
    pub(super) work: WorkKind,
    /// The parent link. Null for a task that has left.
    pub(super) parent: *const ParentLink,
    pub(super) location: &'static Location<'static>,
    /// The cold state that this is a part of, if it is.
    pub(super) cold: Option<NonNull<ColdState>>,
}

impl TaskKind {
    /// Creates the kind of tasks that have left.
    pub(super) const fn left(work: WorkKind) -> Self {
        Self { work, parent: ptr::null(), location: Location::caller(), cold: None }
    }
}

/// Tasks of one type, spawned by one line of the program, under one parent link.
struct SpawnSite {
    kind: TaskKind,
    /// The site that was added before this one, or `NOWHERE`.
    next: *mut SpawnSite,
}

// SAFETY: rule 1: a site does not change once other threads can see it.
unsafe impl Sync for SpawnSite {}

/// The end of every list. No task has this kind.
static NOWHERE: SpawnSite =
    SpawnSite { kind: TaskKind::left(WorkKind::new(|_, _| {})), next: ptr::null_mut() };

/// The spawn sites of one parent link, the newest first. Mostly there is one, and most often the newest is
/// asked for.
pub(super) struct Sites {
    newest: AtomicPtr<SpawnSite>,
    /// Memory for the first sites; the others are allocated.
    first: UnsafeCell<[MaybeUninit<SpawnSite>; FIRST]>,
    /// The number of elements of `first` that were taken, or more.
    taken: AtomicU32,
}

/// The number of sites that need no allocation.
const FIRST: usize = 2;

impl Sites {
    /// Creates an empty list.
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            newest: AtomicPtr::new(ptr::from_ref(&NOWHERE).cast_mut()),
            first: UnsafeCell::new([const { MaybeUninit::uninit() }; FIRST]),
            taken: AtomicU32::new(0),
        }
    }

    /// Returns the kind of tasks that `work` runs and that were spawned at `location`; adds a site if there
    /// is none. Returns `None` if there is no memory.
    #[inline]
    pub(super) fn find(
        link: Pin<&ParentLink>,
        work: WorkKind,
        location: &'static Location<'static>,
    ) -> Option<NonNull<TaskKind>> {
        match link.sites().newest() {
            Some(newest) if newest.get().is_of(work, location) => Some(newest.kind()),
            _ => Self::find_or_add(link, work, location),
        }
    }

    /// Searches the list, and adds a site if there is none. Pointers to sites stay raw: `free`
    /// needs their provenance over the whole allocation, which a reference to a `SpawnSite` does not have.
    #[cold]
    fn find_or_add(
        link: Pin<&ParentLink>,
        work: WorkKind,
        location: &'static Location<'static>,
    ) -> Option<NonNull<TaskKind>> {
        let sites = link.sites();
        let newest = sites.newest();
        let mut next = newest;
        while let Some(site) = next {
            if site.get().is_of(work, location) {
                return Some(site.kind());
            }
            next = site.next();
        }
        let mut newest = newest.map_or(ptr::null_mut(), |newest| newest.site.as_ptr());
        let site = sites.memory(link.env().allocator())?;
        let kind = TaskKind { work, parent: ptr::from_ref(link.get_ref()), location, cold: None };
        loop {
            // SAFETY: rule 2: the memory is this thread's until the site is in the list.
            unsafe { site.write(SpawnSite { kind, next: newest }) };
            // Duplicates do no harm: two threads may add the same site at the same time.
            match sites.newest.compare_exchange(newest, site.as_ptr(), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(SiteRef { site, _sites: PhantomData }.kind()),
                Err(now) => newest = now,
            }
        }
    }

    /// Returns memory for one site.
    fn memory(&self, allocator: &FrameAllocator) -> Option<NonNull<SpawnSite>> {
        let full = FIRST as u32;
        let mut taken = self.taken.load(Ordering::Relaxed);
        if taken < full {
            taken = self.taken.fetch_add(1, Ordering::Relaxed);
        }
        if taken >= full {
            return allocator.allocate(Layout::new::<SpawnSite>()).map(NonNull::cast);
        }
        NonNull::new(self.first.get().cast::<SpawnSite>().wrapping_add(taken as usize))
    }

    /// Frees the memory. Sites that were not allocated do not need the allocator.
    ///
    /// # Safety
    /// Called once, last. No task leads here any more, and the allocator is the one of `find`.
    pub(super) unsafe fn free<'a>(&self, allocator: impl Fn() -> &'a FrameAllocator) {
        // Mostly: one site or none, and so none that was allocated.
        if self.taken.load(Ordering::Relaxed) < FIRST as u32 {
            return;
        }
        let first = self.first.get().cast::<SpawnSite>();
        let is_first = |site: *mut SpawnSite| (first..first.wrapping_add(FIRST)).contains(&site);
        let mut next = self.newest();
        while let Some(site) = next {
            next = site.next();
            let site = site.site;
            if !is_first(site.as_ptr()) && !ptr::eq(site.as_ptr(), &NOWHERE) {
                // SAFETY: the site came from the allocator: it is none of `first`. It is freed once, and was
                // read for the last time: contract of this function.
                unsafe { allocator().deallocate(site.cast(), Layout::new::<SpawnSite>()) };
            }
        }
    }

    /// Returns the newest site.
    #[inline]
    fn newest(&self) -> Option<SiteRef<'_>> {
        SiteRef::new(self.newest.load(Ordering::Acquire))
    }
}

/// A site in a list. It is a pointer: `free` needs its provenance over the whole allocation.
#[derive(Clone, Copy)]
struct SiteRef<'a> {
    site: NonNull<SpawnSite>,
    _sites: PhantomData<&'a Sites>,
}

impl<'a> SiteRef<'a> {
    /// Takes the address of a site in the list that is borrowed, or null.
    #[inline]
    fn new(site: *mut SpawnSite) -> Option<Self> {
        NonNull::new(site).map(|site| Self { site, _sites: PhantomData })
    }

    #[inline]
    fn get(self) -> &'a SpawnSite {
        // SAFETY: rule 1: a site in the list stays as long as the list, which is borrowed, and does not change.
        unsafe { self.site.as_ref() }
    }

    /// Returns the site that was added before this one. The last one is `NOWHERE`.
    fn next(self) -> Option<Self> {
        Self::new(self.get().next)
    }

    /// Returns the address of the kind, with the provenance of the site.
    #[inline]
    fn kind(self) -> NonNull<TaskKind> {
        let offset = core::mem::offset_of!(SpawnSite, kind);
        self.site.map_addr(|address| address.saturating_add(offset)).cast()
    }
}

impl SpawnSite {
    /// Returns true if `work` runs the tasks of this site and `location` spawned them.
    #[inline]
    fn is_of(&self, work: WorkKind, location: &'static Location<'static>) -> bool {
        self.kind.work == work && ptr::eq(self.kind.location, location)
    }
}

impl fmt::Debug for TaskKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskKind").finish_non_exhaustive()
    }
}
