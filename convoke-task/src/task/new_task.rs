//! A task from its creation until it is posted; and the future that it is made of.

#![allow(unsafe_code)]

use core::future::Future;
use core::mem::ManuallyDrop;
use core::panic::Location;
use core::pin::Pin;
use core::ptr::NonNull;

use convoke_core::raw::Runnable;

use super::ask_stop::AskStop;
use super::cell::Cell;
use super::ending::Ending;
use super::header::{NotLeft, TaskHeader};
use super::inside::Inside;
use super::memory::{Vacant, Vacated};
use super::parent_link::ParentLink;
use super::queued::Queued;
use super::reference::{InList, TaskId};
use super::spawn_site::Sites;
use super::state::Access;

/// A future that may run as a task: it may be sent to the threads that run the task and does not outlive what
/// it borrows, by its type or by the word of the one that made it.
pub(crate) struct Spawnable<F> {
    future: F,
    local: bool,
}

impl<F: Future> Spawnable<F> {
    /// Takes a future that may run on any thread.
    #[inline]
    pub(crate) fn anywhere(future: F) -> Self
    where
        F: Send + 'static,
    {
        Self { future, local: false }
    }

    /// Takes a future that must stay on this thread. It is refused under a parent link with another owner
    /// thread.
    #[inline]
    pub(crate) fn here(future: F) -> Self
    where
        F: 'static,
    {
        Self { future, local: true }
    }

    /// Takes a future that borrows and may run on any thread.
    ///
    /// # Safety
    /// What it borrows stays until the task has told its parent that it ended.
    #[inline]
    pub(crate) unsafe fn borrowing(future: F) -> Self
    where
        F: Send,
    {
        Self { future, local: false }
    }

    /// Takes a future that borrows and must stay on this thread.
    ///
    /// # Safety
    /// What it borrows stays until the task has told its parent that it ended.
    pub(crate) unsafe fn borrowing_here(future: F) -> Self {
        Self { future, local: true }
    }

    /// Returns true if it may run as a task under this parent link: it is not local, or this is the owner
    /// thread.
    #[inline]
    pub(crate) fn may_run_under(&self, link: &ParentLink) -> bool {
        !self.local || link.is_owned_here()
    }

    /// Returns the future.
    pub(crate) fn into_future(self) -> F {
        self.future
    }

    /// Returns the future, and true if it is local.
    #[inline]
    pub(super) fn into_parts(self) -> (F, bool) {
        (self.future, self.local)
    }
}

/// A task that was created and not posted. The rules:
///
/// 1. It has its cell to itself: no thread runs the task, and no list leads to it.
/// 2. It holds the runnable of the task, whose parent link is alive.
///
/// If dropped, the future is dropped unpolled, and the memory freed.
pub(crate) struct NewTask<F: Future, M> {
    cell: NonNull<Cell<F, M>>,
}

impl<F: Future, M: Ending<F::Output>> NewTask<F, M> {
    /// Creates a task under this parent link, spawned at `location`. Returns the future if the allocator has no
    /// memory.
    ///
    /// # Safety
    /// 1. `link` does not move any more, and stays until the task has left.
    /// 2. If the future is local, this is the owner thread of the task's parent link: `link`, or the one in the
    ///    ending.
    /// 3. What the ending borrows outlives the task.
    ///
    /// # Panics
    /// If the task has a handle that is to stay on the owner thread, and the future may leave it.
    #[inline]
    pub(crate) unsafe fn create(
        future: Spawnable<F>,
        ending: M,
        link: &ParentLink,
        location: &'static Location<'static>,
    ) -> Result<Self, F> {
        assert!(
            !M::HANDLE || future.local,
            "a handle stays on the thread of its child only if the child stays, too"
        );
        // SAFETY: contracts 1 to 3 are what `Pin` and `fill` ask for.
        unsafe {
            let link = Pin::new_unchecked(link);
            match Vacant::allocate(link, location) {
                Some(vacant) => Ok(vacant.fill(future, ending, link)),
                None => Err(future.into_future()),
            }
        }
    }

    /// Takes over a cell that was just written, and makes it lead to the link in its ending, if there is one.
    ///
    /// # Safety
    /// The cell is queued, and nothing else knows it. It leads to a parent link that stays until the task has left.
    #[inline]
    pub(super) unsafe fn new(cell: NonNull<Cell<F, M>>) -> Self {
        let this = Self { cell };
        // SAFETY: contract 1 of `Ending`: the link is a part of the ending, and so of the task, which does not
        // move.
        if let Some(own) = this.ending().own_link().map(|own| unsafe { Pin::new_unchecked(own) }) {
            this.lead_to(own);
        }
        this
    }

    /// Makes the task lead to another parent link, which is a part of it.
    fn lead_to(&self, link: Pin<&ParentLink>) {
        // SAFETY: rule 1: this thread has the task to itself, so that its kind can be read, and replaced by one
        // of a link that lies in the task. Rule 2: it has not left.
        unsafe {
            let kind = *NotLeft::new(self.header()).kind();
            let site = Sites::find(link, kind.work, kind.location);
            let site = site.expect("the first spawn site needs no memory");
            self.header().set_kind_and_owner(site, link.get_ref());
        }
    }

    /// Returns the ending.
    #[inline]
    pub(crate) fn ending(&self) -> &M {
        // SAFETY: rule 1: the cell is ours, and so alive.
        unsafe { &*Cell::ending_at(self.cell) }
    }

    #[inline]
    fn header(&self) -> &TaskHeader {
        // SAFETY: rule 1: the cell is ours, and so alive.
        unsafe { self.cell.cast::<TaskHeader>().as_ref() }
    }

    /// Returns the address of the task.
    #[inline]
    pub(crate) fn id(&self) -> TaskId {
        TaskId::of(self.cell.cast())
    }

    /// Marks the task as asked to stop.
    pub(crate) fn ask_stop(&self) {
        // It is queued already, so the result asks for nothing.
        let _ = self.header().state.ask_stop(Access::Local);
    }

    /// Returns the task as one that its parent knows, and a stop callback that asks it to stop.
    ///
    /// # Safety
    /// Before the task tells its parent that it has ended, the callback is removed, and the other one used for
    /// the last time.
    pub(crate) unsafe fn known<'a>(&self) -> (InList<'a>, AskStop) {
        // SAFETY: the contract of this function is that of both.
        unsafe { (InList::new(self.cell.cast()), AskStop::new(self.cell.cast())) }
    }

    /// Returns the address of the task, for a list of its parent.
    #[inline]
    pub(super) fn task(&self) -> NonNull<TaskHeader> {
        self.cell.cast()
    }

    /// Returns the cell, for a handle.
    #[inline]
    pub(super) fn cell(&self) -> NonNull<Cell<F, M>> {
        self.cell
    }

    /// Shows the task to the hooks in its environment.
    #[cold]
    #[inline(never)]
    fn show_to_hooks(&self) {
        // SAFETY: rule 1: this thread has the task to itself, as a thread that is inside has.
        let inside = unsafe { Inside::new(self.cell.cast()) };
        self.ending().with_name(&mut |name| inside.show_to_hooks(name));
    }

    #[inline]
    fn into_queued(self) -> Queued {
        if self.header().is_hooked() {
            self.show_to_hooks();
        }
        let this = ManuallyDrop::new(self);
        // SAFETY: rule 2: this was the holder of the runnable, and is given up.
        unsafe { Queued::new(this.cell.cast()) }
    }

    /// Posts the task to its executor.
    #[inline]
    pub(crate) fn post(self) {
        self.into_queued().post();
    }

    /// Runs the task at once, if its executor is the run loop of this thread. Posts it otherwise.
    #[inline]
    pub(crate) fn run_or_post(self) {
        self.into_queued().run_or_post();
    }

    /// Returns the runnable: for an executor that may run the task at once.
    pub(crate) fn into_runnable(self) -> Runnable {
        self.into_queued().into_runnable()
    }
}

impl<F: Future, M> NewTask<F, M> {
    /// Destroys the task, and returns its future.
    pub(crate) fn take_back(self) -> F {
        let this = ManuallyDrop::new(self);
        // SAFETY: rule 1: the cell is ours. The future is moved out, and all else dropped once.
        unsafe {
            let future = Cell::<F, M>::future_at(this.cell).read();
            Vacated::<F, M>::new(this.cell).destroy();
            future
        }
    }
}

impl<F: Future, M> Drop for NewTask<F, M> {
    #[cold]
    fn drop(&mut self) {
        drop(Self { cell: self.cell }.take_back());
    }
}
