//! A count of permits that are granted in the order of the requests. Semaphore, mutex and read-write lock are
//! made of it.
//!
//! The count and two flags, `HAS_WAITERS` and `NOTED`, are one word. While both flags are clear, taking
//! permits is one compare-exchange and releasing them one addition. While one is set, both go through the
//! lock of the queue: nothing overtakes a waiter, and the ledger is kept up to date.
//!
//! 1. `HAS_WAITERS` is set under the lock by a future that is about to queue, and cleared under the lock when
//!    the queue is empty.
//! 2. Permits are taken without the lock only if `HAS_WAITERS` is clear. They are always released without the
//!    lock; a releaser that finds the flag set then grants what is available, under the lock. So a future
//!    that queues either sees the released permits, or the releaser sees the flag.
//! 3. `NOTED` is set under the lock. It is cleared under the lock, or while no diagnosis is on. It is set
//!    initially, so that the first request decides whether all holders are recorded. Later it is set while
//!    the ledger knows a holder, so that the ledger is told when that holder releases.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use convoke_core::raw::WakerMark;
use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_core::raw::sync::const_outside_models;
use pin_project_lite::pin_project;

use crate::ledger;
use crate::ledger::Asking;
use convoke_core::raw::{DropOutOfLine, LastUse, OutOfLine, budget, discard, wake};

use super::wait::{Left, Wait};
use super::wait_queue::{Locked, WaitQueue, WaitState};
use convoke_core::raw::Pause;

const HAS_WAITERS: usize = 1;
const NOTED: usize = 2;
const ONE: usize = 4;

#[cfg(not(feature = "loom"))]
const fn initially_noted() -> usize {
    NOTED
}

/// Set only in models of the ledger: the other models are large enough without the flag.
#[cfg(feature = "loom")]
fn initially_noted() -> usize {
    if ledger::is_on() { NOTED } else { 0 }
}

/// Largest number of permits.
pub(crate) const MOST: usize = usize::MAX >> 2;

/// A count of permits and the queue of futures that wait for them.
#[derive(Debug)]
pub(crate) struct Permits {
    word: AtomicUsize,
    /// The payload of a waiter is the number of permits that it wants.
    queue: WaitQueue<(), usize>,
}

impl Permits {
    const_outside_models! {
        #[track_caller]
        pub(crate) fn new(permits: usize) -> Self {
                assert!(permits <= MOST, "a semaphore can have at most `Semaphore::MOST` permits");
                Self { word: AtomicUsize::new(permits * ONE + initially_noted()), queue: WaitQueue::new(()) }
        }
    }

    /// Returns the number of available permits at this moment.
    pub(crate) fn available(&self) -> usize {
        self.word.load(Ordering::Relaxed) / ONE
    }

    /// Takes `wanted` permits if they are available and there are no waiters.
    #[inline]
    pub(crate) fn try_acquire(&self, wanted: usize) -> bool {
        self.take(wanted)
            || self.take_noted(wanted, |lock| Asking { lock, permits: wanted, place: None, branch: None })
    }

    /// Takes `wanted` permits through the lock, if `NOTED` is set and there are no waiters.
    #[cold]
    fn take_noted(&self, wanted: usize, asking: impl FnOnce(usize) -> Asking) -> bool {
        if self.word.load(Ordering::Relaxed) & NOTED == 0 {
            return false;
        }
        if !ledger::is_on() {
            self.word.fetch_and(!NOTED, Ordering::AcqRel);
            // A thread that has set it meanwhile, under the lock, has seen that a diagnosis is on, and then
            // so do we.
            if !ledger::is_on() {
                return self.take(wanted);
            }
        }
        let locked = self.queue.lock();
        let taken = locked.is_empty(0) && self.take_under_lock(wanted);
        if taken {
            self.note(asking);
        } else {
            self.settle();
        }
        drop(locked);
        taken
    }

    /// Takes `wanted` permits if they are available and neither flag is set.
    #[inline]
    fn take(&self, wanted: usize) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & (HAS_WAITERS | NOTED) != 0 || word / ONE < wanted {
                return false;
            }
            let taken = word - wanted * ONE;
            match self.word.compare_exchange_weak(word, taken, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }

    /// Releases permits that were taken before.
    #[inline]
    pub(crate) fn release(&self, permits: usize) {
        let before = self.word.fetch_add(permits * ONE, Ordering::Release);
        if before.checked_add(permits * ONE).is_none() {
            self.saturate(before, permits);
        }
        if before & (HAS_WAITERS | NOTED) != 0 {
            self.released(before, Some(permits));
        }
    }

    /// Sets the count to the maximum after a release has overflowed it: while permits were held, as many were added as there can be.
    #[cold]
    fn saturate(&self, before: usize, permits: usize) {
        let lost = MOST - (before / ONE).wrapping_add(permits) % (MOST + 1);
        let fill = |word: usize| Some((word / ONE).saturating_add(lost).min(MOST) * ONE + word % ONE);
        let filled = self.word.fetch_update(Ordering::Release, Ordering::Relaxed, fill);
        let now = filled.unwrap_or_else(|word| word);
        // A waiter that came in between found too few permits, and may wait.
        if before & HAS_WAITERS == 0 && now & HAS_WAITERS != 0 {
            self.grant_available();
        }
    }

    /// Finishes a release that found a flag set. `holder` is the number of permits if a holder released them,
    /// and `None` if they were added or were never taken.
    #[cold]
    fn released(&self, before: usize, holder: Option<usize>) {
        if before & NOTED != 0 {
            let locked = self.queue.lock();
            if ledger::is_on()
                && let Some(permits) = holder
            {
                ledger::gave_back(self.address(), permits);
            }
            self.settle();
            drop(locked);
        }
        if before & HAS_WAITERS != 0 {
            self.grant_available();
        }
    }

    /// Returns the address by which the ledger knows this lock.
    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Records permits that were taken through the lock without waiting. The lock is held.
    fn note(&self, asking: impl FnOnce(usize) -> Asking) {
        if ledger::notes_every_lock() {
            ledger::took_at_once(asking(self.address()));
        }
        self.settle();
    }

    /// Sets or clears `NOTED` as rule 3 says. The lock is held.
    fn settle(&self) {
        let noted = ledger::notes_every_lock() || ledger::is_on() && ledger::knows_holders(self.address());
        if noted {
            self.word.fetch_or(NOTED, Ordering::Relaxed);
        } else if cfg!(not(feature = "loom")) || ledger::is_on() {
            self.word.fetch_and(!NOTED, Ordering::Relaxed);
        }
    }

    /// Adds new permits.
    ///
    /// # Panics
    /// If the count would exceed [`MOST`]. No permits are added then.
    #[track_caller]
    pub(crate) fn add(&self, permits: usize) {
        let fits = |word: usize| {
            let permits = (word / ONE).checked_add(permits).filter(|permits| *permits <= MOST)?;
            Some(permits * ONE + word % ONE)
        };
        match self.word.fetch_update(Ordering::Release, Ordering::Relaxed, fits) {
            Ok(before) => self.released(before, None),
            Err(_) => panic!("a semaphore can have at most `Semaphore::MOST` permits"),
        }
    }

    /// Requests `wanted` permits.
    #[inline]
    pub(crate) fn acquire(&self, wanted: usize, pause: Pause) -> Acquire<'_> {
        Acquire { permits: self, wanted, pause, wait: OutOfLine::new(Wait::new(&self.queue)) }
    }

    /// Grants waiters in order, as long as the available permits suffice.
    #[cold]
    fn grant_available(&self) {
        loop {
            let mut locked = self.queue.lock();
            let Some((waker, noted)) = self.grant_first(&mut locked) else { return };
            let more = locked.first(0).is_some_and(|wanted| self.available() >= *wanted);
            drop(locked);
            wake(waker);
            if let Some(began) = noted {
                ledger::woken(began);
            }
            if !more {
                return;
            }
        }
    }

    /// Grants the first waiter if its permits are available. Returns its waker, and the time at which its
    /// wait began, if that was recorded.
    fn grant_first(&self, locked: &mut Locked<'_, (), usize, 1>) -> Option<(Waker, Option<u64>)> {
        let wanted = *locked.first(0)?;
        if !self.take_under_lock(wanted) {
            return None;
        }
        let noted = if ledger::is_on() { locked.first_address(0).and_then(ledger::granted) } else { None };
        if noted.is_some() {
            self.word.fetch_or(NOTED, Ordering::Relaxed);
        }
        let granted = locked.grant(0, |_| ());
        if locked.is_empty(0) {
            self.word.fetch_and(!HAS_WAITERS, Ordering::Relaxed);
        }
        granted.map(|((), waker)| (waker, noted))
    }

    /// Takes `wanted` permits for the first waiter. The lock is held: other threads only add permits
    /// meanwhile.
    fn take_under_lock(&self, wanted: usize) -> bool {
        let enough = |word: usize| (word / ONE >= wanted).then(|| word - wanted * ONE);
        self.word.fetch_update(Ordering::Acquire, Ordering::Relaxed, enough).is_ok()
    }
}

impl Drop for Permits {
    #[inline]
    fn drop(&mut self) {
        if ledger::is_on() && self.word.load(Ordering::Relaxed) & NOTED != 0 {
            ledger::gone(self.address());
        }
    }
}

pin_project! {
    /// Future that takes permits. When it completes, they belong to its caller.
    #[derive(Debug)]
    pub(crate) struct Acquire<'a> {
        permits: &'a Permits,
        wanted: usize,
        pause: Pause,
        #[pin]
        wait: OutOfLine<Wait<'a, (), usize>>,
    }

    impl PinnedDrop for Acquire<'_> {
        #[inline]
        fn drop(this: Pin<&mut Self>) {
            if this.wait.state() != WaitState::Idle {
                this.give_up();
            }
        }
    }
}

/// Not generic, so that it is compiled once.
impl DropOutOfLine for Wait<'_, (), usize> {
    #[inline(never)]
    fn drop_out_of_line(wait: LastUse<'_, Self>) {
        wait.drop_here();
    }

    #[inline]
    fn has_something_to_drop(&mut self) -> bool {
        self.state() == WaitState::Queued
    }
}

impl Acquire<'_> {
    /// Leaves the queue, and passes on what it was granted or what it blocked.
    #[cold]
    fn give_up(self: Pin<&mut Self>) {
        let this = self.project();
        let permits = *this.permits;
        if ledger::is_on() {
            ledger::left(this.wait.address());
        }
        let left = this.wait.as_pin().waiter().leave_now(|locked| {
            if locked.is_empty(0) {
                permits.word.fetch_and(!HAS_WAITERS, Ordering::Relaxed);
            }
        });
        match left {
            Left::Idle => {}
            // A waiter behind this one may want fewer permits.
            Left::Queued(_) => permits.grant_available(),
            Left::Granted(_) => {
                let before = permits.word.fetch_add(*this.wanted * ONE, Ordering::Release);
                permits.released(before, None);
            }
        }
    }

    #[cold]
    fn poll_waiting(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.as_mut().project();
        if Pause::was_stopped() {
            self.give_up();
            return Poll::Pending;
        }
        // Permits that were granted stay granted.
        if !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        let granted = match this.wait.state() {
            WaitState::Idle => unreachable!("`poll` calls this only for a future that is queued or granted"),
            WaitState::Granted => true,
            WaitState::Queued => {
                self.as_mut().project().wait.as_pin().waiter().renew(cx) == WaitState::Granted
            }
        };
        let this = self.project();
        if granted {
            if ledger::is_on() {
                ledger::took_granted(this.wait.address());
            }
            this.wait.as_pin().waiter().take_granted();
            budget::spend();
            return Poll::Ready(());
        }
        if ledger::is_on() {
            ledger::polled(this.wait.address());
        }
        this.pause.wait(cx);
        Poll::Pending
    }

    #[cold]
    fn begin_to_wait(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        let (place, branch) = (Some(this.pause.place()), Some(WakerMark::of(cx.waker())));
        let asking = |lock| Asking { lock, permits: *this.wanted, place, branch };
        if this.permits.take_noted(*this.wanted, asking) {
            budget::spend();
            return Poll::Ready(());
        }
        let node = this.wait.address();
        // Cloned before the wait is recorded: if cloning panics, no record must stay behind.
        let waker = cx.waker().clone();
        // The record may allocate, so it is made before the lock is taken.
        if ledger::is_on() {
            ledger::waits(node, asking(this.permits.address()));
        }
        let mut locked = this.permits.queue.lock();
        let alone = locked.is_empty(0);
        this.permits.word.fetch_or(HAS_WAITERS, Ordering::Relaxed);
        if alone && this.permits.take_under_lock(*this.wanted) {
            this.permits.word.fetch_and(!HAS_WAITERS, Ordering::Relaxed);
            if ledger::is_on() {
                ledger::left(node);
            }
            this.permits.note(asking);
            drop(locked);
            // `discard` contains a panic of the waker: the permits are already ours.
            discard(waker);
            budget::spend();
            return Poll::Ready(());
        }
        this.wait.as_pin().waiter().enqueue(&mut locked, 0, *this.wanted, waker);
        drop(locked);
        this.pause.wait(cx);
        Poll::Pending
    }
}

impl Future for Acquire<'_> {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.wait.state() != WaitState::Idle {
            return self.poll_waiting(cx);
        }
        if Pause::is_stopped() || !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        if self.permits.take(self.wanted) {
            budget::spend();
            return Poll::Ready(());
        }
        self.begin_to_wait(cx)
    }
}
