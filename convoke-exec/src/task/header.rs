//! The part of a task that does not depend on its future: what queues, wakers and parents know of it.
//!
//! The rules of who may touch which field:
//! 1. `state` and `home` are for everybody who refers to the task. They say who may do what.
//! 2. Whoever holds the runnable, or is inside (`RUNNING`), has `runnable`, `stage`, `stopped`, `side` and the body to himself.
//! 3. `place` outlives the task's stay: it may be looked at from inside, by whoever holds the runnable, and by whoever has a
//!    letter to send (`Wake::Send`), which the task waits for; not by others.
//! 4. `links` and `list` belong to the parent, under its lock.
//! 5. `location` never changes; `waits` is written from inside and read by people who look.

use core::alloc::Layout;
use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::mem::ManuallyDrop;
use core::panic::Location;
use core::ptr::NonNull;
use core::task::{RawWaker, RawWakerVTable, Waker};

use convoke_core::raw::sync::atomic::{AtomicU32, Ordering};
use convoke_core::raw::{Header, HomeId, Letter, Runnable, Waits};
use convoke_core::{Env, Executor, StopReason};

use super::cell::Making;
use super::memory::Memory;
use super::place::{Links, List, Place};
use super::side::{Side, no_memory};
use super::state::{From, State, Wake};

/// See the head of this file.
#[repr(C)]
pub(crate) struct TaskHeader {
    /// First, so that its address is ours.
    runnable: Header,
    pub(super) state: State,
    /// The number of the home it lives in, or zero if it is shared.
    home: AtomicU32,
    pub(super) stage: Cell<Stage>,
    /// Whether something in its outermost frame has ended by the stopped door.
    pub(super) stopped: Cell<bool>,
    /// Which list of its parent's it is in: rule 4.
    pub(crate) list: Cell<List>,
    fixed: Fixed,
    place: NonNull<Place>,
    pub(crate) location: &'static Location<'static>,
    pub(super) waits: Waits,
    side: Cell<Option<NonNull<Side>>>,
    pub(crate) links: UnsafeCell<Links>,
}

/// What never changes, in one byte: in whose memory a task lies, and whether it must not leave its thread.
#[derive(Clone, Copy)]
struct Fixed(u8);

impl Fixed {
    const LOCAL: u8 = 1 << 7;

    #[inline]
    fn new(memory: Memory, local: bool) -> Self {
        Self(memory as u8 | if local { Self::LOCAL } else { 0 })
    }
}

/// What is in the body's room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The future.
    Future,
    /// The outcome; the task waits for its guests.
    Outcome,
    /// Nothing, or the outcome, for a handle: the parent was told.
    Delivered,
    /// The outcome, and the task has been told to leave.
    Leaving,
    /// As `Delivered`, and the task has been told to leave.
    LeavingDelivered,
}

// SAFETY: the rules at the head of this file.
unsafe impl Sync for TaskHeader {}

impl TaskHeader {
    /// A task that is queued, in memory of the usual allocator: whoever makes it posts its runnable.
    #[inline]
    pub(super) fn new(runnable: Header, state: State, home: HomeId, making: Making) -> Self {
        Self {
            runnable,
            state,
            home: AtomicU32::new(home.number()),
            stage: Cell::new(Stage::Future),
            stopped: Cell::new(false),
            list: Cell::new(List::Running),
            fixed: Fixed::new(Memory::Recycling, making.local),
            place: making.place,
            location: making.location,
            waits: Waits::new(),
            side: Cell::new(None),
            links: UnsafeCell::new(Links::new()),
        }
    }

    /// Asks a task that nobody knows yet to stop, from its beginning.
    ///
    /// # Safety
    /// The task is there.
    pub(crate) unsafe fn stop_from_the_beginning(task: NonNull<Self>) {
        // SAFETY: the caller's. It is queued, and so there is nothing to do about it.
        let _ = unsafe { task.as_ref() }.state.ask_stop(From::Home);
    }

    /// Notes down for a task that nobody knows yet that it lies in this memory, and not in the usual one.
    ///
    /// # Safety
    /// The task is there, and its memory is this.
    #[cold]
    pub(super) unsafe fn set_memory(task: NonNull<Self>, memory: Memory) {
        // SAFETY: the caller's: nobody else is here.
        unsafe { (*task.as_ptr()).fixed = Fixed::new(memory, task.as_ref().is_local()) };
    }

    /// Puts a task that nobody knows yet into another place.
    ///
    /// # Safety
    /// The place outlives the task's stay.
    pub(crate) unsafe fn set_place(task: NonNull<Self>, place: NonNull<Place>) {
        // SAFETY: the caller's: nobody else is here.
        unsafe {
            (*task.as_ptr()).place = place;
            (*task.as_ptr()).home = AtomicU32::new(place.as_ref().home().number());
        }
    }

    /// From where this thread touches the task.
    #[inline]
    pub(super) fn from(&self) -> From {
        let home = self.home.load(Ordering::Acquire);
        if home == 0 {
            From::Anywhere
        } else if home == HomeId::here().number() {
            From::Home
        } else {
            From::Away
        }
    }

    /// The number of the home it lives in, or zero if it is shared; for people who look.
    pub(super) fn home_number(&self) -> u32 {
        self.home.load(Ordering::Relaxed)
    }

    /// Whether it must not leave its thread.
    #[inline]
    pub(super) fn is_local(&self) -> bool {
        self.fixed.0 & Fixed::LOCAL != 0
    }

    /// In whose memory it lies.
    #[inline]
    pub(super) fn memory(&self) -> Memory {
        match self.fixed.0 & !Fixed::LOCAL {
            memory if memory == Memory::Recycling as u8 => Memory::Recycling,
            memory if memory == Memory::System as u8 => Memory::System,
            _ => Memory::Own,
        }
    }

    /// Whether this thread is at its home.
    #[inline]
    pub(crate) fn is_at_home(&self) -> bool {
        self.lives_in(HomeId::here())
    }

    /// Whether it lives there.
    #[inline]
    pub(super) fn lives_in(&self, home: HomeId) -> bool {
        self.home.load(Ordering::Relaxed) == home.number()
    }

    /// Whether it lives there, and has not ended.
    #[cfg(feature = "testing")]
    pub(crate) fn is_alive_in(&self, home: HomeId) -> bool {
        self.lives_in(home) && !self.state.is_done()
    }

    /// What the task hangs under.
    ///
    /// # Safety
    /// Rule 3.
    #[inline]
    pub(crate) unsafe fn place(&self) -> &Place {
        // SAFETY: the caller's.
        unsafe { self.place.as_ref() }
    }

    /// The environment it runs in.
    ///
    /// # Safety
    /// Rule 3.
    #[inline]
    pub(super) unsafe fn env(&self) -> &Env {
        // SAFETY: rule 2 for the side: who may look at the place holds the runnable, is inside, or finds a task at home,
        // which has not moved.
        unsafe {
            match self.side().and_then(Side::moved_to) {
                Some(env) => env,
                None => self.place().env(),
            }
        }
    }

    /// The side table, if there is one.
    ///
    /// # Safety
    /// Rule 2.
    #[inline]
    pub(super) unsafe fn side(&self) -> Option<&Side> {
        // SAFETY: it is freed with the body.
        self.side.get().map(|side| unsafe { side.as_ref() })
    }

    /// The side table, made now if there is none.
    ///
    /// # Safety
    /// Rule 2.
    pub(super) unsafe fn make_side(&self) -> &Side {
        // SAFETY: the caller's.
        match unsafe { self.try_make_side() } {
            Some(side) => side,
            None => no_memory(Layout::new::<Side>()),
        }
    }

    /// The same, if there is memory for it.
    ///
    /// # Safety
    /// Rule 2.
    unsafe fn try_make_side(&self) -> Option<&Side> {
        // SAFETY: the caller's.
        if let Some(side) = unsafe { self.side() } {
            return Some(side);
        }
        // SAFETY: rule 3, from rule 2.
        let side = Side::make(unsafe { self.place() }.env().allocator())?;
        self.side.set(Some(side));
        // SAFETY: just made, and freed with the body.
        Some(unsafe { side.as_ref() })
    }

    /// Frees the side table. All guests have left.
    ///
    /// # Safety
    /// Rule 2, and nobody uses it any more.
    pub(super) unsafe fn drop_side(&self) {
        if let Some(side) = self.side.take() {
            // SAFETY: the caller's.
            unsafe { Side::free(side, self.place().env().allocator()) };
        }
    }

    /// Wakes the task.
    ///
    /// # Safety
    /// The caller has a reference to the task, or the task has not left.
    #[inline]
    pub(crate) unsafe fn wake(task: NonNull<Self>) {
        // SAFETY: the caller's; it does as it is told.
        unsafe {
            let (state, from) = (&task.as_ref().state, task.as_ref().from());
            Self::act(task, state.wake(from));
        }
    }

    /// One more reference.
    ///
    /// # Safety
    /// The caller has one, or the task has not left.
    pub(crate) unsafe fn add_reference(task: NonNull<Self>) {
        // SAFETY: the caller's.
        let this = unsafe { task.as_ref() };
        this.state.add_reference(this.from());
    }

    /// Asks the task to stop.
    ///
    /// # Safety
    /// The caller has a reference to the task, or the task has not left.
    pub(crate) unsafe fn ask_stop(task: NonNull<Self>) {
        // SAFETY: as in `wake`.
        unsafe {
            let (state, from) = (&task.as_ref().state, task.as_ref().from());
            Self::act(task, state.ask_stop(from));
        }
    }

    /// The same where the caller is at the task's home, or on its thread with all others kept out. A task that has left does not
    /// hear of it.
    ///
    /// # Safety
    /// As above, and the caller has the task's handle.
    pub(crate) unsafe fn ask_stop_at_home(task: NonNull<Self>) {
        // SAFETY: as in `wake`: a task that is not done has not left.
        unsafe { Self::act(task, task.as_ref().state.ask_stop(From::Home)) };
    }

    /// # Safety
    /// The state has said that it is for the caller to do this.
    #[inline]
    pub(super) unsafe fn act(task: NonNull<Self>, wake: Wake) {
        match wake {
            Wake::Nothing => {}
            // SAFETY: the caller's: the runnable is ours to make.
            Wake::Post => unsafe { Self::post(task) },
            // SAFETY: the caller's: the letter is ours to send.
            Wake::Send => unsafe { Self::send(task) },
        }
    }

    /// # Safety
    /// The state has said that the runnable is the caller's to make.
    #[inline]
    pub(crate) unsafe fn post(task: NonNull<Self>) {
        // SAFETY: the task does not leave before its runnable was called, so it is there for as long as the runnable; the
        // executor is read before the runnable is given away, and may only then be gone.
        unsafe {
            let executor = NonNull::from(task.as_ref().env().executor());
            executor.as_ref().post(Runnable::new(task.cast()));
        }
    }

    /// The same for a task that has not run yet, and so has not moved.
    ///
    /// # Safety
    /// As for `post`.
    #[inline]
    pub(crate) unsafe fn post_first(task: NonNull<Self>) {
        // SAFETY: as in `post`.
        unsafe {
            let executor = NonNull::from(task.as_ref().place().env().executor());
            executor.as_ref().post(Runnable::new(task.cast()));
        }
    }

    /// # Safety
    /// The state has said that a letter is to be sent: rule 3 then lets us look at the place.
    #[cold]
    unsafe fn send(task: NonNull<Self>) {
        // SAFETY: the task waits for the letter. A handle of our own, for as soon as the letter is sent the task may leave.
        unsafe {
            let executor = task.as_ref().place().env().executor().clone();
            let Some(home) = executor.home() else { homeless() };
            let letter = Letter::new(task.cast(), Self::open_letter);
            if let Some(runnable) = home.send(letter) {
                executor.post(runnable);
            }
        }
    }

    /// # Safety
    /// Called once for a letter, at home.
    unsafe fn open_letter(task: NonNull<()>) {
        let task = task.cast::<Self>();
        // SAFETY: the task waits for its letter; what the state says is ours to do. A reference of our own for afterwards: if
        // the task has moved meanwhile, it may end elsewhere as soon as the letter is opened.
        unsafe {
            Self::add_reference(task);
            let opened = task.as_ref().state.open();
            if opened.leaving || opened.refused {
                if opened.leaving {
                    let stage = &task.as_ref().stage;
                    let delivered = stage.get() == Stage::Delivered;
                    stage.set(if delivered { Stage::LeavingDelivered } else { Stage::Leaving });
                }
                // Ours to run, or to take to its end: by the one function that knows its type.
                drop(Runnable::new(task.cast()));
            } else {
                Self::wake(task);
            }
            drop_reference(task);
        }
    }

    /// From here on the task is shared: it is about to run on another executor.
    ///
    /// # Safety
    /// Called from inside.
    pub(super) unsafe fn move_out(&self) {
        if self.from() == From::Home {
            self.state.move_out();
            self.home.store(0, Ordering::Release);
        }
    }

    /// Why it was asked to stop, if it was.
    ///
    /// # Safety
    /// Rule 3.
    #[inline]
    pub(super) unsafe fn stop_reason(&self) -> Option<StopReason> {
        if !self.state.stop_asked() {
            return None;
        }
        // SAFETY: the caller's.
        Some(unsafe { self.place() }.stop_reason().unwrap_or(StopReason::Abandoned))
    }

    /// A waker that does not count as a reference: for the time of a poll.
    #[inline]
    pub(super) unsafe fn borrowed_waker(task: NonNull<Self>) -> ManuallyDrop<Waker> {
        // SAFETY: the functions fit the pointer; the caller sees to it that the task outlives the waker, and it is not
        // dropped.
        ManuallyDrop::new(unsafe { Waker::from_raw(raw_waker(task)) })
    }
}

#[cold]
fn homeless() -> ! {
    eprintln!("convoke: an executor has a home for some of its work and none for other work. Aborting.");
    std::process::abort()
}

#[inline]
fn raw_waker(task: NonNull<TaskHeader>) -> RawWaker {
    RawWaker::new(task.as_ptr().cast_const().cast(), &WAKER)
}

static WAKER: RawWakerVTable = RawWakerVTable::new(clone_waker, wake, wake_by_ref, drop_waker);

/// # Safety
/// `data` is a task, and the caller has a reference to it; so in all four.
unsafe fn clone_waker(data: *const ()) -> RawWaker {
    // SAFETY: the caller's.
    let task = unsafe { NonNull::new_unchecked(data.cast_mut().cast::<TaskHeader>()) };
    // SAFETY: as above.
    let header = unsafe { task.as_ref() };
    header.state.add_reference(header.from());
    raw_waker(task)
}

unsafe fn wake(data: *const ()) {
    // SAFETY: the caller's.
    unsafe {
        wake_by_ref(data);
        drop_waker(data);
    }
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: the caller's.
    unsafe { TaskHeader::wake(NonNull::new_unchecked(data.cast_mut().cast())) };
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: the caller's.
    unsafe { drop_reference(NonNull::new_unchecked(data.cast_mut().cast())) };
}

/// Gives up the handle that does not leave the task's home.
///
/// # Safety
/// The caller has it, and is on its thread.
#[inline]
pub(crate) unsafe fn drop_handle(task: NonNull<TaskHeader>) {
    // SAFETY: the caller's.
    if unsafe { task.as_ref() }.state.drop_handle() {
        // SAFETY: as in `drop_reference`.
        drop(unsafe { Runnable::new(task.cast()) });
    }
}

/// Gives up a reference.
///
/// # Safety
/// The caller has one.
#[inline]
pub(crate) unsafe fn drop_reference(task: NonNull<TaskHeader>) {
    // SAFETY: the caller's.
    let header = unsafe { task.as_ref() };
    if header.state.drop_reference(header.from()) {
        // The one function that knows its type frees it: see `cell::call`.
        // SAFETY: nobody else refers to it, and nothing of it is queued: it has left.
        drop(unsafe { Runnable::new(task.cast()) });
    }
}

// Tasks that wait are many: this is the price of each, beside its future.
#[cfg(all(target_pointer_width = "64", not(feature = "loom")))]
const _: () = assert!(size_of::<TaskHeader>() <= 80);

impl fmt::Debug for TaskHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHeader")
            .field("state", &self.state)
            .field("spawned at", &self.location)
            .finish_non_exhaustive()
    }
}
