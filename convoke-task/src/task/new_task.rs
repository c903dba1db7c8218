//! A task from its creation until it is posted; and the future that it is made of.

#![allow(unsafe_code)]

use core::future::Future;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::panic::Location;
use core::pin::Pin;
use core::ptr::NonNull;

use convoke_core::raw::Runnable;

use super::ask_stop::AskStop;
use super::cell::{Cell, part_of};
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
    pub(super) future: F,
    pub(super) local: bool,
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
}

/// A task that was created and not posted, without its type. The rules:
///
/// 1. It has its cell to itself: no thread runs the task, and no list leads to it.
/// 2. It holds the runnable of the task, whose parent link is alive.
///
/// If dropped, the future is dropped unpolled, and the memory freed.
pub(crate) struct Unposted {
    task: NonNull<TaskHeader>,
    /// Destroys the task, and drops its future.
    destroy: unsafe fn(NonNull<TaskHeader>),
}

impl Unposted {
    #[inline]
    fn inside(&self) -> &Inside {
        // SAFETY: rule 1: this thread has the task to itself, as a thread that is inside has.
        unsafe { Inside::new(self.task) }
    }

    #[inline]
    fn header(&self) -> &TaskHeader {
        self.inside().header()
    }

    /// Returns the address of the task.
    #[inline]
    pub(crate) fn id(&self) -> TaskId {
        TaskId::of(self.task)
    }

    /// Returns the address of the task, for a list of its parent.
    #[inline]
    pub(super) fn task(&self) -> NonNull<TaskHeader> {
        self.task
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
        unsafe { (InList::new(self.task), AskStop::new(self.task)) }
    }

    /// Makes the task lead to another parent link, which is a part of it.
    fn lead_to(&self, link: &ParentLink) {
        // SAFETY: rule 1: this thread has the task to itself, so that its kind can be read, and replaced by one
        // of a link that lies in the task and so does not move. Rule 2: it has not left.
        unsafe {
            let kind = *NotLeft::new(self.header()).kind();
            let site = Sites::find(Pin::new_unchecked(link), kind.work, kind.location);
            let site = site.expect("the first spawn site needs no memory");
            self.header().set_kind_and_owner(site, link);
        }
    }

    /// Shows the task to the hooks in its environment.
    #[cold]
    #[inline(never)]
    fn show_to_hooks(&self, name: Option<&str>) {
        self.inside().show_to_hooks(name);
    }

    #[inline]
    fn into_queued(self) -> Queued {
        let this = ManuallyDrop::new(self);
        // SAFETY: rule 2: this was the holder of the runnable, and is given up.
        unsafe { Queued::new(this.task) }
    }
}

impl Drop for Unposted {
    #[cold]
    fn drop(&mut self) {
        // SAFETY: rule 1: the cell is ours, it is not used again, and `create` has named the function of its type.
        unsafe { (self.destroy)(self.task) };
    }
}

/// A task that was created and not posted, with its type. What needs no type is done with the field, so that it is
/// compiled once.
pub(crate) struct NewTask<F: Future, M> {
    pub(crate) untyped: Unposted,
    _cell: PhantomData<NonNull<Cell<F, M>>>,
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
            match Vacant::allocate(Cell::<F, M>::TYPE, Cell::<F, M>::WORK, link, location) {
                Some(vacant) => Ok(vacant.fill(future, ending, link)),
                None => Err(future.future),
            }
        }
    }

    /// Takes over a cell that was just written, and makes it lead to the link in its ending, if there is one.
    ///
    /// # Safety
    /// The task is of this type. It is queued, and nothing else knows it. It leads to a parent link that stays until it
    /// has left.
    #[inline]
    pub(super) unsafe fn new(task: NonNull<TaskHeader>) -> Self {
        let untyped = Unposted { task, destroy: Self::destroy };
        let this = Self { untyped, _cell: PhantomData };
        // Contract 1 of `Ending`: the link is a part of the ending.
        if let Some(own) = this.ending().own_link() {
            this.untyped.lead_to(own);
        }
        this
    }

    /// Returns the ending.
    #[inline]
    pub(crate) fn ending(&self) -> &M {
        // SAFETY: rule 1: the cell is ours, and so alive.
        unsafe { &*(part_of(self.untyped.task, Cell::<F, M>::ENDING_AT) as *const M) }
    }

    #[inline]
    fn into_queued(self) -> Queued {
        if self.untyped.header().is_hooked() {
            self.untyped.show_to_hooks(self.ending().name().as_deref());
        }
        self.untyped.into_queued()
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

    /// Destroys the task, and returns its future.
    pub(crate) fn take_back(self) -> F {
        let task = ManuallyDrop::new(self.untyped).task;
        // SAFETY: rule 1: the cell is ours, of this type, and is given up. The future is moved out, and all else
        // dropped once.
        unsafe {
            let future = (part_of(task, Cell::<F, M>::BODY_AT) as *const F).read();
            Vacated::new(task, Cell::<F, M>::TYPE).destroy();
            future
        }
    }

    /// Destroys the task, and drops its future.
    ///
    /// # Safety
    /// The task is of this type, and was not posted. This thread has it to itself, and does not use it afterwards.
    unsafe fn destroy(task: NonNull<TaskHeader>) {
        let untyped = Unposted { task, destroy: Self::destroy };
        drop(Self { untyped, _cell: PhantomData }.take_back());
    }
}
