//! Lists of timers that are linked through the timers themselves. Adding one at the end and removing one from
//! anywhere are a few writes. The timer wheel is made of them.
//!
//! The meaning of the links:
//! 1. A list is a ring: `next` of the last timer is the first, and `before` of the first is the last.
//! 2. The low bits of `position` are the number of the list that a timer is in, or `NONE`. The bits above are
//!    its sequence number, which says in which order timers were armed and never changes.
//! 3. A *chain* is a row of timers in no list, linked through `next`. In it only `next`, `at` and the
//!    sequence number are valid.
//!
//! They are not `IntrusiveList`, because a timer does not know which of the wheel's lists it is in but by the number in its links,
//! and because a whole list is taken out and split as a chain.
//!
//! The rules of access:
//! 4. A timer in a list or a chain exists and stays in place: `IdleTimer::new` requires that until it is
//!    called or disarmed, and both take it out first.
//! 5. The lists, and all [`Linked`] timers of them, are used by one thread at a time: the one that holds the
//!    lock of the queue.
//! 6. A `Linked` is not kept, outside of lists and chains, once its timer was taken out to be called, or
//!    disarmed.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::ptr::{self, NonNull};

use convoke_core::raw::{ArmedTimer, Call, IdleTimer, Timer, TimerLinks};

/// Number of bits of a list number.
const LIST_BITS: u32 = 12;
/// The list number of a timer in no list.
pub(super) const NONE: u32 = (1 << LIST_BITS) - 1;

/// A timer whose links belong to the lists: rules 4 to 6.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Linked(NonNull<Timer>);

impl Linked {
    /// Takes over a timer that is armed for `at` with this sequence number. It is in no list yet.
    #[inline]
    pub(super) fn new(timer: IdleTimer, at: u64, order: u64) -> Self {
        let this = timer.address();
        let links = TimerLinks {
            at: Cell::new(at),
            next: Cell::new(None),
            before: Cell::new(this),
            position: Cell::new((order << LIST_BITS) | u64::from(NONE)),
        };
        // SAFETY: rule 4: an `IdleTimer` exists, and is not armed, so nothing else uses its links.
        unsafe { Timer::links(this).write(links) };
        Self(this)
    }

    /// Returns the links that `new` has written.
    #[inline]
    fn links(&self) -> &TimerLinks {
        // SAFETY: rules 4 and 6: the timer exists, and `new` has written its links. Rule 5: no other thread
        // uses them now. All fields are cells, so that a shared reference suffices.
        unsafe { &*Timer::links(self.0) }
    }

    #[inline]
    pub(super) fn at(self) -> u64 {
        self.links().at.get()
    }

    #[inline]
    pub(super) fn set_at(self, at: u64) {
        self.links().at.set(at);
    }

    /// Returns the next timer of the ring or the chain.
    #[inline]
    pub(super) fn next(self) -> Option<Self> {
        self.links().next.get().map(Self)
    }

    /// Sets the next timer of a chain.
    #[inline]
    pub(super) fn set_next(self, next: Option<Self>) {
        self.links().next.set(next.map(|next| next.0));
    }

    #[inline]
    fn before(self) -> Self {
        Self(self.links().before.get())
    }

    /// Makes `next` the next timer of the ring.
    #[inline]
    fn connect(self, next: Self) {
        self.set_next(Some(next));
        next.links().before.set(self.0);
    }

    /// Returns the number of the list that it is in, or `NONE`.
    #[inline]
    pub(super) fn list(self) -> u32 {
        self.links().position.get() as u32 & NONE
    }

    #[inline]
    fn set_list(self, list: u32) {
        let position = &self.links().position;
        position.set((position.get() & !u64::from(NONE)) | u64::from(list));
    }

    /// Returns the sequence number. It orders timers of the same time.
    #[inline]
    pub(super) fn order(self) -> u64 {
        self.links().position.get() >> LIST_BITS
    }

    /// Returns a number that orders timers of the same time and has room for a list number in the low bits.
    #[inline]
    pub(super) fn shifted_order(self) -> u64 {
        self.links().position.get() & !u64::from(NONE)
    }
}

/// Finds an armed timer in its lists. `ArmedTimer::new` requires that the timer exists and was armed by the
/// queue that it is passed to.
impl From<ArmedTimer> for Linked {
    #[inline]
    fn from(timer: ArmedTimer) -> Self {
        Self(timer.address())
    }
}

/// A timer that was taken out to be called, once.
#[must_use = "an armed timer must be called or disarmed"]
pub(super) struct Due(NonNull<Timer>);

impl Due {
    /// Takes over a timer that is called and not armed.
    pub(super) fn refused(timer: IdleTimer) -> Self {
        // Written, because its owner may still disarm it.
        Self(Linked::new(timer, 0, 0).0)
    }

    /// Returns an address that identifies the timer.
    #[inline]
    pub(super) fn address(&self) -> usize {
        self.0.addr().get()
    }

    /// Calls the timer, with no lock held. The call may destroy it.
    #[inline]
    pub(super) fn call(self, call: Call) {
        // SAFETY: rule 4: the timer exists until it is called. `remove_due` or `refused` made this its only
        // `Due`, which is consumed, so it is called once.
        unsafe { Timer::call(self.0, call) };
    }
}

/// `COUNT` lists. Boxed, because they are many and a queue is moved while it is built.
pub(super) struct Lists<const COUNT: usize> {
    first: Box<[*mut Timer; COUNT]>,
}

impl<const COUNT: usize> Lists<COUNT> {
    pub(super) fn new() -> Self {
        // Not written one by one: there are thousands, and most programs use a few of them.
        let first = Box::new_zeroed();
        // SAFETY: a null pointer is valid, and all its bytes are zero.
        Self { first: unsafe { first.assume_init() } }
    }

    #[inline]
    pub(super) fn is_empty(&self, list: u32) -> bool {
        self.first[list as usize].is_null()
    }

    /// Returns the first timer of a list.
    #[inline]
    pub(super) fn first(&self, list: u32) -> Option<Linked> {
        NonNull::new(self.first[list as usize]).map(Linked)
    }

    /// Iterates over the times of a list, from first to last.
    pub(super) fn times(&self, list: u32) -> impl Iterator<Item = u64> {
        let first = self.first(list);
        let mut next = first;
        core::iter::from_fn(move || {
            let timer = next?;
            next = timer.next().filter(|after| Some(*after) != first);
            Some(timer.at())
        })
    }

    /// Returns the time of the last timer of a list.
    pub(super) fn last_time(&self, list: u32) -> Option<u64> {
        self.first(list).map(|first| first.before().at())
    }

    /// Adds a timer that is in no list at the end.
    #[inline]
    pub(super) fn push(&mut self, list: u32, timer: Linked) {
        timer.set_list(list);
        match self.first(list) {
            None => {
                timer.connect(timer);
                self.first[list as usize] = timer.0.as_ptr();
            }
            Some(first) => {
                first.before().connect(timer);
                timer.connect(first);
            }
        }
    }

    /// Removes a timer from the list that it is in.
    #[inline]
    pub(super) fn remove(&mut self, timer: Linked) {
        let first = &mut self.first[timer.list() as usize];
        timer.set_list(NONE);
        match timer.next().filter(|next| *next != timer) {
            None => *first = ptr::null_mut(),
            Some(next) => {
                timer.before().connect(next);
                if *first == timer.0.as_ptr() {
                    *first = next.0.as_ptr();
                }
            }
        }
    }

    /// Removes a timer to call it.
    #[inline]
    pub(super) fn remove_due(&mut self, timer: Linked) -> Due {
        self.remove(timer);
        Due(timer.0)
    }

    /// Takes all timers out of a list, as a chain.
    pub(super) fn take(&mut self, list: u32) -> Option<Linked> {
        let first = self.first(list)?;
        self.first[list as usize] = ptr::null_mut();
        first.before().set_next(None);
        Some(first)
    }

    /// Adds all timers of a chain at the end.
    pub(super) fn push_chain(&mut self, list: u32, mut chain: Option<Linked>) {
        while let Some(timer) = chain {
            // Before `push` overwrites it.
            chain = timer.next();
            self.push(list, timer);
        }
    }
}
