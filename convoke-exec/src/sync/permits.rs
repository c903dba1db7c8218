//! A number of permits, handed to who asks for them in order: what semaphore, mutex and read-write lock are made of.
//!
//! The number and two bits, *somebody waits* and *holders are noted*, are one word. Without the bits, taking is one
//! compare-exchange and giving back one addition. With one of them, both go by the lock of the queue: nobody overtakes who
//! waits, and who diagnoses is told.
//!
//! 1. The bit is set under the lock by who is about to queue, and cleared under the lock when the queue is empty.
//! 2. Permits are taken without the lock only if the bit is not set; they are added without it always, and who then
//!    finds the bit set hands out what there is, under the lock. So who queues either sees what was added, or is seen.
//! 3. The other bit is set under the lock, and cleared there, or while nobody diagnoses. It is set at first, so that the first
//!    who asks decides whether all are noted; later, while somebody is noted who has permits, so that he is found when he
//!    gives them back.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use convoke_core::raw::WakerMark;
use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_core::raw::sync::const_outside_models;
use pin_project_lite::pin_project;

use crate::diagnosis::ledger::{self, Asking};
use crate::wake::{discard, wake};

use super::pause::Pause;
use super::wait::{Left, Wait};
use super::wait_queue::{Locked, Standing, WaitQueue};

const WAITED_FOR: usize = 1;
const NOTED: usize = 2;
const ONE: usize = 4;

#[cfg(not(feature = "loom"))]
const fn noted_at_first() -> usize {
    NOTED
}

/// Only in models of that: the others are large enough without it.
#[cfg(feature = "loom")]
fn noted_at_first() -> usize {
    if ledger::is_on() { NOTED } else { 0 }
}

/// How many permits there can be.
pub(crate) const MOST: usize = usize::MAX >> 2;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Permits {
    word: AtomicUsize,
    /// Each carries how many it wants.
    queue: WaitQueue<(), usize>,
}

impl Permits {
    const_outside_models! {
        #[track_caller]
        pub(crate) fn new(permits: usize) -> Self {
            assert!(permits <= MOST, "more permits than there can be");
            Self { word: AtomicUsize::new(permits * ONE + noted_at_first()), queue: WaitQueue::new(()) }
        }
    }

    /// How many there are this moment.
    pub(crate) fn available(&self) -> usize {
        self.word.load(Ordering::Relaxed) / ONE
    }

    /// Takes so many, if they are there and nobody waits.
    #[inline]
    pub(crate) fn try_acquire(&self, wanted: usize) -> bool {
        self.take(wanted)
            || self.take_noted(wanted, |lock| Asking { lock, permits: wanted, place: None, branch: None })
    }

    /// The same, if holders are noted.
    #[cold]
    fn take_noted(&self, wanted: usize, asking: impl FnOnce(usize) -> Asking) -> bool {
        if self.word.load(Ordering::Relaxed) & NOTED == 0 {
            return false;
        }
        if !ledger::is_on() {
            self.word.fetch_and(!NOTED, Ordering::AcqRel);
            // Whoever has set it meanwhile, under the lock, has seen that somebody diagnoses, and so do we.
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

    /// Takes so many, if they are there, and neither bit is set.
    #[inline]
    fn take(&self, wanted: usize) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & (WAITED_FOR | NOTED) != 0 || word / ONE < wanted {
                return false;
            }
            let taken = word - wanted * ONE;
            match self.word.compare_exchange_weak(word, taken, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }

    /// Gives so many back.
    #[inline]
    pub(crate) fn release(&self, permits: usize) {
        let before = self.word.fetch_add(permits * ONE, Ordering::Release);
        if before.checked_add(permits * ONE).is_none() {
            self.fill_up(before, permits);
        }
        if before & (WAITED_FOR | NOTED) != 0 {
            self.released(before, Some(permits));
        }
    }

    /// While these were held so many were added that now there would be more than there can be, and the count began anew. Makes it
    /// the most that there can be.
    #[cold]
    fn fill_up(&self, before: usize, permits: usize) {
        let lost = MOST - (before / ONE).wrapping_add(permits) % (MOST + 1);
        let fill = |word: usize| Some((word / ONE).saturating_add(lost).min(MOST) * ONE + word % ONE);
        let filled = self.word.fetch_update(Ordering::Release, Ordering::Relaxed, fill);
        let now = filled.unwrap_or_else(|word| word);
        // Who came meanwhile found few, and may wait.
        if before & WAITED_FOR == 0 && now & WAITED_FOR != 0 {
            self.hand_out();
        }
    }

    /// What is to be done after permits were given back, by a holder of so many, or by somebody who had not taken them.
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
        if before & WAITED_FOR != 0 {
            self.hand_out();
        }
    }

    /// By which the ledger knows it.
    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Somebody has taken permits by the lock, without having waited. The lock is held.
    fn note(&self, asking: impl FnOnce(usize) -> Asking) {
        if ledger::notes_every_lock() {
            ledger::took_at_once(asking(self.address()));
        }
        self.settle();
    }

    /// Rule 3. The lock is held.
    fn settle(&self) {
        let noted = ledger::notes_every_lock() || ledger::is_on() && ledger::knows_holders(self.address());
        if noted {
            self.word.fetch_or(NOTED, Ordering::Relaxed);
        } else if cfg!(not(feature = "loom")) || ledger::is_on() {
            self.word.fetch_and(!NOTED, Ordering::Relaxed);
        }
    }

    /// The same, if they are new and may be too many.
    ///
    /// # Panics
    /// If there would be more than there can be. They are not added then.
    #[track_caller]
    pub(crate) fn add(&self, permits: usize) {
        let fits = |word: usize| {
            let permits = (word / ONE).checked_add(permits).filter(|permits| *permits <= MOST)?;
            Some(permits * ONE + word % ONE)
        };
        match self.word.fetch_update(Ordering::Release, Ordering::Relaxed, fits) {
            Ok(before) => self.released(before, None),
            Err(_) => panic!("more permits than there can be"),
        }
    }

    /// Asks for so many.
    #[inline]
    pub(crate) fn acquire(&self, wanted: usize, pause: Pause) -> Acquire<'_> {
        Acquire { permits: self, wanted, pause, wait: Wait::new(&self.queue) }
    }

    /// Grants as many of those who wait as there are permits for, in order.
    #[cold]
    fn hand_out(&self) {
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

    /// The waker of the first, if it was granted; and when it began to wait, if that was noted.
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
            self.word.fetch_and(!WAITED_FOR, Ordering::Relaxed);
        }
        granted.map(|((), waker)| (waker, noted))
    }

    /// Takes so many, for the first of those who wait. The lock is held: others only add.
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
    /// Asks for permits. They belong to who gets its `()`.
    #[derive(Debug)]
    pub(crate) struct Acquire<'a> {
        permits: &'a Permits,
        wanted: usize,
        pause: Pause,
        #[pin]
        wait: Wait<'a, (), usize>,
    }

    impl PinnedDrop for Acquire<'_> {
        #[inline]
        fn drop(this: Pin<&mut Self>) {
            if this.wait.standing() != Standing::Out {
                this.give_up();
            }
        }
    }
}

impl Acquire<'_> {
    /// Goes out of the queue, and passes on what it was granted, or held back.
    #[cold]
    fn give_up(self: Pin<&mut Self>) {
        let this = self.project();
        let permits = *this.permits;
        if ledger::is_on() {
            ledger::left(this.wait.address());
        }
        let left = this.wait.leave_now(|locked| {
            if locked.is_empty(0) {
                permits.word.fetch_and(!WAITED_FOR, Ordering::Relaxed);
            }
        });
        match left {
            Left::Out => {}
            // One behind it may want less.
            Left::Queued(_) => permits.hand_out(),
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
        let granted = match this.wait.standing() {
            Standing::Out => unreachable!("it waits"),
            Standing::Granted => true,
            Standing::Queued => self.as_mut().project().wait.renew(cx) == Standing::Granted,
        };
        let this = self.project();
        if granted {
            if ledger::is_on() {
                ledger::took_granted(this.wait.address());
            }
            this.wait.take_granted();
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
            return Poll::Ready(());
        }
        let node = this.wait.address();
        // Before the note, which would stay if this panics.
        let waker = cx.waker().clone();
        // Room for the note is made before the lock is taken.
        if ledger::is_on() {
            ledger::waits(node, asking(this.permits.address()));
        }
        let mut locked = this.permits.queue.lock();
        let alone = locked.is_empty(0);
        this.permits.word.fetch_or(WAITED_FOR, Ordering::Relaxed);
        if alone && this.permits.take_under_lock(*this.wanted) {
            this.permits.word.fetch_and(!WAITED_FOR, Ordering::Relaxed);
            if ledger::is_on() {
                ledger::left(node);
            }
            this.permits.note(asking);
            drop(locked);
            // Contained: the permits are ours by now.
            discard(waker);
            return Poll::Ready(());
        }
        this.wait.enqueue(&mut locked, 0, *this.wanted, waker);
        drop(locked);
        this.pause.wait(cx);
        Poll::Pending
    }
}

impl Future for Acquire<'_> {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.wait.standing() != Standing::Out {
            return self.poll_waiting(cx);
        }
        if Pause::is_stopped() {
            return Poll::Pending;
        }
        if self.permits.take(self.wanted) {
            return Poll::Ready(());
        }
        self.begin_to_wait(cx)
    }
}
