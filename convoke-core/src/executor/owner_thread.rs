//! A home: what belongs to one thread at a time. An executor that runs all its work on one thread has one, and the state of
//! tasks that live there is changed by plain loads and stores; what comes from elsewhere is a letter, and the thread at
//! home acts on it.
//!
//! 1. At most one thread is inside a home at a time. [`OwnerThread::enter`] asks its caller for that.
//! 2. A home that is closed is entered by nobody any more except by its occupant (`closed.rs`).
//! 3. The header of a home is posted by whoever puts the first letter into an empty box, and not again before it was called.
//!    What is posted keeps the home: an executor may lose the handle that the home came from before it runs what it was given.

#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::closed::{KeepOut, Occupant};
use super::{Call, Header, Runnable, WorkKind};
use crate::Panic;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, thread_mark};
use crate::this_thread::{Polling, ThisThread};

/// The number of a home. Zero is nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerId(u32);

impl OwnerId {
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
        ThisThread::with(|thread| Self(thread.home.replace(self.0)))
    }

    /// The home that this thread is in, or nobody's.
    #[inline]
    pub fn here() -> Self {
        ThisThread::with(|thread| Self(thread.home.get()))
    }
}

/// See the head of this file.
pub struct OwnerThread {
    id: OwnerId,
    shared: Arc<Shared>,
}

/// What a home shares with its header where that is posted.
#[repr(C)]
pub(super) struct Shared {
    /// First, so that its address is ours; not in a cell of a model's, which has other things first.
    header: UnsafeCell<Header>,
    id: OwnerId,
    closed: AtomicBool,
    /// The mark of the thread that made it: work that must not leave its thread is destroyed there or not at all.
    thread: u64,
    letters: Mutex<Letters>,
}

struct Letters {
    list: Vec<RemoteWake>,
    posted: bool,
}

/// Something for the thread at home to do.
#[derive(Clone, Copy)]
pub struct RemoteWake {
    to: NonNull<()>,
    open: unsafe fn(NonNull<()>),
}

// SAFETY: rule 3: the header is posted once at a time; all else is shared by design.
unsafe impl Sync for Shared {}
// SAFETY: a home is not bound to a thread as such; rule 1 is.
unsafe impl Send for Shared {}
// SAFETY: whoever writes a letter promises that it may be opened on the thread at home.
unsafe impl Send for RemoteWake {}

/// This thread is at home for as long as this lives.
#[derive(Debug)]
pub struct OnOwnerThread<'a> {
    before: OwnerId,
    /// Of a home that is closed. It goes after this thread has left.
    occupant: Option<Occupant>,
    _home: PhantomData<(&'a OwnerThread, *mut ())>,
}

impl Drop for OnOwnerThread<'_> {
    #[inline]
    fn drop(&mut self) {
        ThisThread::with(|thread| thread.home.set(self.before.0));
        if self.occupant.is_some() {
            Polling::here(Polling::leave_closed);
        }
    }
}

impl OwnerThread {
    /// A home of the thread that makes it.
    pub fn new() -> Self {
        let id = next_id();
        let shared = Arc::new(Shared {
            header: UnsafeCell::new(Header::new(const { &WorkKind::new(Shared::called) })),
            id,
            closed: AtomicBool::new(false),
            thread: thread_mark(),
            letters: Mutex::new(Letters { list: Vec::new(), posted: false }),
        });
        Self { id, shared }
    }

    /// Its number.
    #[inline]
    pub fn id(&self) -> OwnerId {
        self.id
    }

    /// Whether this is the thread that made it.
    pub fn is_own_thread(&self) -> bool {
        self.shared.thread == thread_mark()
    }

    /// Goes in.
    ///
    /// # Safety
    /// Rule 1: no other thread is inside, or comes in before the guard is dropped; and it is not closed.
    #[inline]
    pub unsafe fn enter(&self) -> OnOwnerThread<'_> {
        OnOwnerThread { before: self.id.enter(), occupant: None, _home: PhantomData }
    }

    /// Closes it: from now on its letters are opened wherever they arrive, one thread at a time. Returns inside; all letters
    /// that are there by then are opened when the guard goes.
    ///
    /// # Safety
    /// As for `enter`, and nobody will call `enter` any more.
    pub unsafe fn close(&self) -> OnOwnerThread<'_> {
        let occupant = Occupant::of_closing(&self.shared);
        self.shared.closed.store(true, Ordering::Release);
        if occupant.is_some() {
            Polling::here(Polling::enter_closed);
        }
        OnOwnerThread { before: self.id.enter(), occupant, _home: PhantomData }
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// Keeps other threads out of the home with this number while what is returned lives: for what must not leave its thread
    /// and is used there while its home is not run. Waits for a thread that is inside the home just now, which is possible
    /// only if it is closed. Letters that arrive meanwhile are opened when the guard goes.
    pub fn keep_out(number: u32) -> impl Sized {
        KeepOut::new(OwnerId(number))
    }

    /// Sends a letter to the thread at home. What is returned must be posted to the executor whose home this is.
    ///
    /// # Safety
    /// The letter may be opened once, at home, until it is.
    #[must_use = "without it nobody opens the letter"]
    pub unsafe fn send(&self, letter: RemoteWake) -> Option<Runnable> {
        let mut letters = self.shared.letters();
        letters.list.push(letter);
        let post = !core::mem::replace(&mut letters.posted, true);
        drop(letters);
        // SAFETY: rule 3.
        post.then(|| unsafe { Shared::runnable(&self.shared) })
    }
}

impl Shared {
    pub(super) fn id(&self) -> OwnerId {
        self.id
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// # Safety
    /// Rule 3.
    unsafe fn runnable(this: &Arc<Self>) -> Runnable {
        let header = Arc::into_raw(this.clone()).cast_mut().cast::<Header>();
        // SAFETY: the header is the first field (`repr(C)`) of what is kept alive by the count that `into_raw` left, until
        // `called` takes it back.
        unsafe { Runnable::new(NonNull::new_unchecked(header)) }
    }

    /// # Safety
    /// Called once for each `runnable`, by that.
    unsafe fn called(header: NonNull<Header>, call: Call) {
        // SAFETY: the pointer and the count are those that `runnable` gave away.
        let home = unsafe { Arc::from_raw(header.as_ptr().cast_const().cast::<Self>()) };
        if call == Call::Run && OwnerId::here() == home.id && !home.is_closed() {
            return home.open_posted();
        }
        home.letters().posted = false;
        // Nobody runs it any more: then we do, or whoever does already. A home that is not closed has an executor that drops
        // work of others; the letters wait for the next one, or until it is closed. That it is closed is seen here if it was
        // when our letter was too late to be seen by who has closed it: both took the lock of the letters.
        if home.is_closed() {
            drop(Occupant::enter(&home));
        }
    }

    /// Opens letters whose runnable was called. More may come meanwhile: they are not posted again.
    fn open_posted(&self) {
        self.open_while(|letters| {
            letters.posted = !letters.list.is_empty();
            letters.posted
        });
    }

    /// Opens the letters of a home that is closed. The caller is its occupant.
    pub(super) fn open_as_occupant(&self) {
        let before = self.id.enter();
        Polling::here(Polling::enter_closed);
        let _inside = Left(before);
        self.open_while(|letters| !letters.list.is_empty());
    }

    fn open_while(&self, more: impl Fn(&mut Letters) -> bool) {
        let mut first_panic = None;
        loop {
            let list = {
                let mut letters = self.letters();
                if !more(&mut letters) {
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

/// This thread goes back to where it was, out of a home that is closed, when this is dropped.
struct Left(OwnerId);

impl Drop for Left {
    fn drop(&mut self) {
        ThisThread::with(|thread| thread.home.set(self.0.0));
        Polling::here(Polling::leave_closed);
    }
}

impl RemoteWake {
    /// `open(to)` is to be called at home.
    #[inline]
    pub const fn new(to: NonNull<()>, open: unsafe fn(NonNull<()>)) -> Self {
        Self { to, open }
    }
}

fn next_id() -> OwnerId {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
    // When all numbers are used up homes are nobody's: their tasks cost a little more then.
    let next = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| next.checked_add(1));
    OwnerId(next.unwrap_or(0))
}

impl Default for OwnerThread {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for OwnerThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnerThread")
            .field("id", &self.id)
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RemoteWake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteWake").field(&self.to).finish()
    }
}
