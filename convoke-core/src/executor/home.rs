//! A home: what belongs to one thread at a time. An executor that runs all its work on one thread has one, and the state of
//! tasks that live there is changed by plain loads and stores; what comes from elsewhere is a letter, and the thread at
//! home acts on it.
//!
//! 1. At most one thread is inside a home at a time. [`Home::enter`] asks its caller for that.
//! 2. A home that is closed is entered by nobody any more except through [`Home::enter_closed`], which takes a lock.
//! 3. The header of a home is posted by whoever puts the first letter into an empty box, and not again before it was called.

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::{Call, Header, Runnable, WorkKind};
use crate::Panic;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, MutexGuard, process_lock, thread_mark};
use crate::this_thread::{Polling, ThisThread};

/// The number of a home. Zero is nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomeId(u32);

impl HomeId {
    /// Nobody's.
    pub const NONE: Self = Self(0);

    /// As a plain number.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Whether this thread may be in a home that is closed, and so on another thread than that home's own.
    #[inline]
    pub fn here_may_be_closed() -> bool {
        Polling::here(Polling::is_in_closed)
    }

    /// This thread is there from now on. Where it was before.
    #[inline]
    fn enter(self) -> Self {
        ThisThread::with(|thread| thread.home.replace(self))
    }

    /// The home that this thread is in, or nobody's.
    #[inline]
    pub fn here() -> Self {
        ThisThread::with(|thread| thread.home.get())
    }
}

/// See the head of this file.
#[repr(C)]
pub struct Home {
    /// First, so that its address is ours; not in a cell of a model's, which has other things first.
    header: UnsafeCell<Header>,
    id: HomeId,
    closed: AtomicBool,
    /// The mark of the thread that made it: work that must not leave its thread is destroyed there or not at all.
    thread: usize,
    letters: Mutex<Letters>,
}

struct Letters {
    list: Vec<Letter>,
    posted: bool,
}

/// Something for the thread at home to do.
#[derive(Clone, Copy)]
pub struct Letter {
    to: NonNull<()>,
    open: unsafe fn(NonNull<()>),
}

// SAFETY: rule 3: the header is posted once at a time; all else is shared by design.
unsafe impl Sync for Home {}
// SAFETY: a home is not bound to a thread as such; rule 1 is.
unsafe impl Send for Home {}
// SAFETY: whoever writes a letter promises that it may be opened on the thread at home.
unsafe impl Send for Letter {}

/// This thread is at home for as long as this lives.
#[derive(Debug)]
pub struct AtHome<'a> {
    before: HomeId,
    closed: Option<Closed>,
    _home: PhantomData<(&'a Home, *mut ())>,
}

impl Drop for AtHome<'_> {
    #[inline]
    fn drop(&mut self) {
        ThisThread::with(|thread| thread.home.set(self.before));
        if self.closed.is_some() {
            Polling::here(Polling::leave_closed);
        }
    }
}

impl Home {
    /// A home of the thread that makes it.
    pub fn new() -> Self {
        Self {
            header: UnsafeCell::new(Header::new(const { &WorkKind::new(Self::called) })),
            id: next_id(),
            closed: AtomicBool::new(false),
            thread: thread_mark(),
            letters: Mutex::new(Letters { list: Vec::new(), posted: false }),
        }
    }

    /// Its number.
    #[inline]
    pub fn id(&self) -> HomeId {
        self.id
    }

    /// Whether this is the thread that made it.
    pub fn is_own_thread(&self) -> bool {
        self.thread == thread_mark()
    }

    /// Goes in.
    ///
    /// # Safety
    /// Rule 1: no other thread is inside, or comes in before the guard is dropped; and it is not closed.
    #[inline]
    pub unsafe fn enter(&self) -> AtHome<'_> {
        AtHome { before: self.id.enter(), closed: None, _home: PhantomData }
    }

    /// Closes it: from now on its letters are opened wherever they arrive, one thread at a time. Returns inside.
    ///
    /// # Safety
    /// As for `enter`, and nobody will call `enter` any more.
    pub unsafe fn close(&self) -> AtHome<'_> {
        let inside = self.enter_closed();
        self.closed.store(true, Ordering::Release);
        inside
    }

    /// Opens the letters whose runnable was dropped before the home was closed: nobody else would.
    ///
    /// # Safety
    /// It is closed, and this thread is inside.
    pub unsafe fn open_left_letters(&self) {
        let left = !core::mem::replace(&mut self.letters().posted, true);
        if left {
            self.open_letters();
        }
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// As long as what is returned lives, nobody acts in a home that is closed: for what must not leave its thread and is used
    /// there while its home is not run.
    pub fn keep_out() -> impl Sized {
        Closed::lock()
    }

    /// Goes into a home that is closed: rule 2.
    fn enter_closed(&self) -> AtHome<'_> {
        let closed = Some(Closed::lock());
        Polling::here(Polling::enter_closed);
        AtHome { before: self.id.enter(), closed, _home: PhantomData }
    }

    /// Sends a letter to the thread at home. What is returned must be posted to the executor whose home this is.
    ///
    /// # Safety
    /// The letter may be opened once, at home, until it is; and this home outlives what is returned.
    #[must_use = "without it nobody opens the letter"]
    pub unsafe fn send(&self, letter: Letter) -> Option<Runnable> {
        let mut letters = self.letters();
        letters.list.push(letter);
        // SAFETY: rule 3.
        (!core::mem::replace(&mut letters.posted, true)).then(|| unsafe { self.runnable() })
    }

    /// # Safety
    /// Rule 3.
    unsafe fn runnable(&self) -> Runnable {
        debug_assert!(core::ptr::eq(self.header.get().cast(), self), "the first field");
        // SAFETY: the header is the first field (`repr(C)`), of a home that outlives the runnable: `send`'s caller.
        unsafe { Runnable::new(NonNull::from(self).cast::<Header>()) }
    }

    /// # Safety
    /// `header` is that of a home.
    unsafe fn called(header: NonNull<Header>, call: Call) {
        // SAFETY: the header is the first field (`repr(C)`).
        let home = unsafe { header.cast::<Self>().as_ref() };
        match call {
            Call::Run if HomeId::here() == home.id => home.open_letters(),
            // Nobody runs it any more: then we do. A home that is not closed has an executor that drops work of others;
            // the letters wait for the next one.
            _ if home.is_closed() => {
                let _inside = home.enter_closed();
                home.open_letters();
            }
            _ => home.letters().posted = false,
        }
    }

    fn open_letters(&self) {
        let mut first_panic = None;
        loop {
            let list = {
                let mut letters = self.letters();
                if letters.list.is_empty() {
                    letters.posted = false;
                    break;
                }
                core::mem::take(&mut letters.list)
            };
            for letter in &list {
                // A waker or an executor of the program's may panic: the other letters are opened nevertheless.
                // SAFETY: `send`'s caller promised that it may be opened once, at home, where we are.
                if let Err(panic) = Panic::catch(|| unsafe { (letter.open)(letter.to) }) {
                    first_panic.get_or_insert(panic);
                }
            }
            // The room is kept: in the steady state nothing is allocated.
            let mut letters = self.letters();
            if letters.list.capacity() == 0 {
                let mut list = list;
                list.clear();
                letters.list = list;
            }
        }
        if let Some(panic) = first_panic {
            panic.resume();
        }
    }

    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Letter {
    /// `open(to)` is to be called at home.
    #[inline]
    pub const fn new(to: NonNull<()>, open: unsafe fn(NonNull<()>)) -> Self {
        Self { to, open }
    }
}

fn next_id() -> HomeId {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
    // When all numbers are used up homes are nobody's: their tasks cost a little more then.
    let next = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| next.checked_add(1));
    HomeId(next.unwrap_or(0))
}

/// One lock for all homes that are closed, so that no two threads wait for each other's. It may be taken again by the
/// thread that has it: what is destroyed in a home that is closed may lead to another, and back.
#[derive(Debug)]
struct Closed {
    /// None if the thread had it already.
    outermost: Option<MutexGuard<'static, ()>>,
}

static CLOSED_BY: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

impl Closed {
    fn lock() -> Self {
        if CLOSED_BY.load(Ordering::Relaxed) == thread_mark() {
            return Self { outermost: None };
        }
        let outermost = process_lock().lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        CLOSED_BY.store(thread_mark(), Ordering::Relaxed);
        Self { outermost: Some(outermost) }
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        if self.outermost.is_some() {
            CLOSED_BY.store(0, Ordering::Relaxed);
        }
    }
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Home")
            .field("id", &self.id)
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Letter").field(&self.to).finish()
    }
}
