//! Those who wait until an attempt may succeed: wakers, kept by the driver under the lock of a source's direction. Who waits owns
//! nothing but a ticket, and may go at any time.

use core::fmt;
use core::task::Waker;

use convoke_task::raw::wake_locally;

use super::later_watchers::LaterWatchers;

/// Which of those who wait. Good until he was woken, and no other one is ever given the same: a source would have to hand out
/// 2^61 of them for its numbers to run out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticket(u64);

impl Ticket {
    /// Nobody's.
    pub const NONE: Self = Self(0);

    /// Its number, which is below 2^62.
    #[inline]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The ticket of this number, which [`number`](Self::number) has said.
    #[inline]
    pub const fn numbered(number: u64) -> Self {
        Self(number)
    }
}

/// The wakers of one direction of a source. Nearly always there is one at the most, and it lies in here. Nearly always it is the
/// same that waits again and again: so its waker may be kept when it was woken, and is there the next time.
#[derive(Default)]
pub struct Watchers {
    first: Option<Waker>,
    /// Odd while the first waits, and then its ticket. Even while nobody waits here: then the waker, if there is one, is merely
    /// kept. It only counts up, so no ticket of the first comes twice; those of the others are even.
    turn: u64,
    others: Option<Box<LaterWatchers>>,
}

impl Watchers {
    /// Nobody.
    pub const fn new() -> Self {
        Self { first: None, turn: 0, others: None }
    }

    /// Whether nobody waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.first_waits() && self.others.as_deref().is_none_or(LaterWatchers::is_empty)
    }

    #[inline]
    fn first_waits(&self) -> bool {
        self.turn & 1 != 0
    }

    /// As [`watch`](Watchers::watch), for one whose waker is the first that is here: it waits already, or was kept. Otherwise nothing
    /// is done.
    #[inline]
    pub fn watch_again(&mut self, ticket: Ticket, waker: &Waker) -> Option<Watched> {
        if !self.first.as_ref().is_some_and(|first| first.will_wake(waker)) {
            return None;
        }
        if !self.first_waits() {
            // Who has a ticket may wait among the others.
            if ticket != Ticket::NONE && self.others.is_some() {
                return None;
            }
            self.turn += 1;
            return Some(Watched { ticket: Ticket(self.turn), is_new: true, before: None });
        }
        (self.turn == ticket.0).then_some(Watched { ticket, is_new: false, before: None })
    }

    /// Adds a waker, or puts it in the place of the one with this ticket.
    pub fn watch(&mut self, ticket: Ticket, waker: Waker) -> Watched {
        if ticket != Ticket::NONE
            && let Some(place) = self.place(ticket)
        {
            return Watched { ticket, is_new: false, before: Some(core::mem::replace(place, waker)) };
        }
        if self.first_waits() {
            let ticket = Ticket(self.others.get_or_insert_default().push(waker));
            return Watched { ticket, is_new: true, before: None };
        }
        self.turn += 1;
        Watched { ticket: Ticket(self.turn), is_new: true, before: self.first.replace(waker) }
    }

    /// Wakes the first, if it is a task at home on this thread, and keeps its waker. No code of the program's runs, so a lock may be
    /// held. Who was not woken by this is taken.
    #[inline]
    pub fn wake_first_at_home(&mut self) -> bool {
        let woken = self.first_waits() && self.first.as_ref().is_some_and(wake_locally);
        if woken {
            self.turn += 1;
        }
        woken
    }

    /// The one with this ticket waits no longer. Its waker, if it was still there, is to be dropped without the lock.
    pub fn unwatch(&mut self, ticket: Ticket) -> Option<Waker> {
        if self.first_waits() && self.turn == ticket.0 {
            self.turn += 1;
            return self.first.take();
        }
        self.others.as_deref_mut()?.remove(ticket.0)
    }

    /// Takes one, to be woken without the lock; called until there is none.
    #[inline]
    pub fn take(&mut self) -> Option<Waker> {
        if !self.first_waits() {
            return self.others.as_deref_mut()?.take();
        }
        self.turn += 1;
        self.first.take()
    }

    #[cold]
    fn place(&mut self, ticket: Ticket) -> Option<&mut Waker> {
        if self.first_waits() && self.turn == ticket.0 {
            return self.first.as_mut();
        }
        self.others.as_deref_mut()?.place(ticket.0)
    }
}

/// What came of beginning to wait.
#[derive(Debug)]
pub struct Watched {
    /// By which one waits no longer.
    pub ticket: Ticket,
    /// Whether one more waits than before.
    pub is_new: bool,
    /// The waker that was there, to be dropped without the lock.
    pub before: Option<Waker>,
}

impl fmt::Debug for Watchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchers").field("empty", &self.is_empty()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Poll, Wake};

    use convoke_core::Outcome;
    use convoke_exec::RunLoop;
    use convoke_task::BlockOn;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn each_waits_once_and_those_who_left_are_not_woken() {
        let counts: Vec<Arc<Count>> = (0..4).map(|_| Arc::default()).collect();
        let mut watchers = Watchers::new();
        let mut tickets = [Ticket::NONE; 4];
        for _ in 0..2 {
            for (ticket, count) in tickets.iter_mut().zip(&counts) {
                *ticket = watchers.watch(*ticket, count.clone().into()).ticket;
            }
        }
        assert!(watchers.unwatch(tickets[0]).is_some() && watchers.unwatch(tickets[2]).is_some());
        assert!(watchers.unwatch(tickets[0]).is_none());
        core::iter::from_fn(|| watchers.take()).for_each(Waker::wake);
        assert!(watchers.is_empty());
        let woken: Vec<usize> = counts.iter().map(|count| count.0.load(Ordering::Relaxed)).collect();
        assert_eq!(woken, [0, 1, 0, 1]);
    }

    #[test]
    fn who_waits_again_has_his_waker_there_and_another_takes_its_place() {
        let (one, other): (Arc<Count>, Arc<Count>) = Default::default();
        // Clones: the first of a kind need not be equal to its clones, whose functions may lie elsewhere.
        let (one, other) = (Waker::from(one).clone(), Waker::from(other).clone());
        let mut watchers = Watchers::new();
        assert!(watchers.watch_again(Ticket::NONE, &one).is_none(), "nobody's is there");
        let first = watchers.watch(Ticket::NONE, one.clone());
        assert!(first.is_new && first.before.is_none());
        let again = watchers.watch_again(first.ticket, &one).expect("it waits already");
        assert!(again.ticket == first.ticket && !again.is_new);
        assert!(watchers.watch_again(Ticket::NONE, &one).is_none(), "it is the waker of one who waits");
        assert!(watchers.watch_again(first.ticket, &other).is_none());
        // As it is when it was woken in place.
        watchers.turn += 1;
        assert!(watchers.is_empty() && watchers.take().is_none(), "it is merely kept");
        assert!(watchers.unwatch(first.ticket).is_none() && watchers.unwatch(Ticket::NONE).is_none());
        let again = watchers.watch_again(first.ticket, &one).expect("it was kept");
        assert!(again.is_new && again.ticket != first.ticket && !watchers.is_empty());
        watchers.turn += 1;
        let other = watchers.watch(Ticket::NONE, other);
        assert!(other.is_new && other.before.is_some_and(|kept| kept.will_wake(&one)));
    }

    #[test]
    fn a_task_at_home_is_woken_in_place_and_anybody_else_is_taken() {
        let mut watchers = Watchers::new();
        let stranger = watchers.watch(Ticket::NONE, Waker::from(Arc::new(Count::default()))).ticket;
        assert!(!watchers.wake_first_at_home() && !watchers.is_empty());
        assert!(watchers.unwatch(stranger).is_some());
        let mut polls = 0;
        let outcome = RunLoop::new().block_on(poll_fn(|cx| {
            polls += 1;
            let again = watchers.watch_again(Ticket::NONE, cx.waker());
            assert_eq!(again.is_some(), polls > 1, "its waker is kept");
            if again.is_none() {
                watchers.watch(Ticket::NONE, cx.waker().clone());
            }
            if polls == 3 {
                return Poll::Ready(());
            }
            assert!(watchers.wake_first_at_home() && watchers.is_empty());
            assert!(!watchers.wake_first_at_home(), "nobody waits");
            Poll::Pending
        }));
        assert_eq!((outcome, polls), (Outcome::Value(()), 3));
    }

    #[test]
    fn a_ticket_from_four_thousand_million_waits_ago_takes_nobody_out() {
        let waker = Waker::from(Arc::new(Count::default()));
        let mut watchers = Watchers::new();
        let stale = watchers.watch(Ticket::NONE, waker.clone()).ticket;
        assert!(watchers.take().is_some());
        // As if so many had waited since that numbers of 32 bits begin again.
        for rounds in [1, 2] {
            watchers.turn = (rounds << 32) + stale.number() - 1;
            let live = watchers.watch(Ticket::NONE, waker.clone()).ticket;
            assert_ne!(stale, live);
            assert!(watchers.unwatch(stale).is_none(), "it was woken long ago");
            let again = watchers.watch(stale, waker.clone());
            assert!(again.is_new && watchers.unwatch(again.ticket).is_some());
            assert!(watchers.unwatch(live).is_some());
        }
    }
}
