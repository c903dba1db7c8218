//! `Watchers`: the wakers of callers that wait until an attempt may succeed. The driver stores them under the
//! lock of a source's direction. A waiting caller owns only a ticket and may leave at any time.

use core::fmt;
use core::task::Waker;

use convoke_task::raw::wake_locally;

use super::later_watchers::LaterWatchers;

/// The identity of one wait. It is valid until the waker is woken, and is never issued again for the same
/// direction of a source: the numbers would run out after 2^61 waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticket(u64);

impl Ticket {
    /// The ticket of no wait.
    pub const NONE: Self = Self(0);

    /// Returns its number, which is below 2^62.
    #[inline]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Returns the ticket with a number that [`number`](Self::number) returned.
    #[inline]
    pub const fn numbered(number: u64) -> Self {
        Self(number)
    }
}

/// The wakers of one direction of a source. Nearly always there is at most one, which is stored inline.
/// Nearly always the same task waits again and again, so its waker may stay cached after it was woken.
#[derive(Default)]
pub struct Watchers {
    first: Option<Waker>,
    /// Odd while the first waker waits: then it is its ticket. Even while it does not wait: then `first` is
    /// empty or a cached waker. It only counts up, so no ticket of the first waker is issued twice; the
    /// tickets of the others are even.
    turn: u64,
    others: Option<Box<LaterWatchers>>,
}

impl Watchers {
    /// Creates an empty list.
    pub const fn new() -> Self {
        Self { first: None, turn: 0, others: None }
    }

    /// Returns true if no waker waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.first_waits() && self.others.as_deref().is_none_or(LaterWatchers::is_empty)
    }

    #[inline]
    fn first_waits(&self) -> bool {
        self.turn & 1 != 0
    }

    /// Registers a waker that is stored inline already, because it waits or is cached. Returns `None`, and
    /// does nothing, for any other waker: call [`watch`](Watchers::watch) then.
    #[inline]
    pub fn watch_again(&mut self, ticket: Ticket, waker: &Waker) -> Option<Watched> {
        if !self.first.as_ref().is_some_and(|first| first.will_wake(waker)) {
            return None;
        }
        if !self.first_waits() {
            // A caller with a ticket may still wait among the others.
            if ticket != Ticket::NONE && self.others.is_some() {
                return None;
            }
            self.turn += 1;
            return Some(Watched { ticket: Ticket(self.turn), is_new: true, before: None });
        }
        (self.turn == ticket.0).then_some(Watched { ticket, is_new: false, before: None })
    }

    /// Adds a waker, or replaces the one with this ticket.
    pub fn watch(&mut self, ticket: Ticket, waker: Waker) -> Watched {
        if ticket != Ticket::NONE
            && let Some(slot) = self.slot(ticket)
        {
            return Watched { ticket, is_new: false, before: Some(core::mem::replace(slot, waker)) };
        }
        if self.first_waits() {
            let ticket = Ticket(self.others.get_or_insert_default().push(waker));
            return Watched { ticket, is_new: true, before: None };
        }
        self.turn += 1;
        Watched { ticket: Ticket(self.turn), is_new: true, before: self.first.replace(waker) }
    }

    /// Wakes the first waker if it belongs to a task of the current thread, and caches it. Returns true if it
    /// did. This only queues the task and runs no code of the program, so a lock may be held. Wakers that
    /// this does not wake are left for [`take`](Watchers::take).
    #[inline]
    pub fn wake_first_locally(&mut self) -> bool {
        let woken = self.first_waits() && self.first.as_ref().is_some_and(wake_locally);
        if woken {
            self.turn += 1;
        }
        woken
    }

    /// Removes the waker with this ticket, if it still waits. The caller drops it without the lock.
    pub fn unwatch(&mut self, ticket: Ticket) -> Option<Waker> {
        if self.first_waits() && self.turn == ticket.0 {
            self.turn += 1;
            return self.first.take();
        }
        self.others.as_deref_mut()?.remove(ticket.0)
    }

    /// Takes one waker, to be woken without the lock. Call it until it returns `None`.
    #[inline]
    pub fn take(&mut self) -> Option<Waker> {
        if !self.first_waits() {
            return self.others.as_deref_mut()?.take();
        }
        self.turn += 1;
        self.first.take()
    }

    #[cold]
    fn slot(&mut self, ticket: Ticket) -> Option<&mut Waker> {
        if self.first_waits() && self.turn == ticket.0 {
            return self.first.as_mut();
        }
        self.others.as_deref_mut()?.get_mut(ticket.0)
    }
}

/// The result of [`Watchers::watch`].
#[derive(Debug)]
pub struct Watched {
    /// The ticket of this wait.
    pub ticket: Ticket,
    /// True if one more waker waits than before.
    pub is_new: bool,
    /// The waker that was replaced, to be dropped without the lock.
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
    fn each_watcher_waits_once_and_removed_ones_are_not_woken() {
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
    fn a_cached_waker_is_reused_by_its_task_and_replaced_by_others() {
        let (one, other): (Arc<Count>, Arc<Count>) = Default::default();
        // Cloned first: a waker need not be equal to its own clones, since their vtables may differ.
        let (one, other) = (Waker::from(one).clone(), Waker::from(other).clone());
        let mut watchers = Watchers::new();
        assert!(watchers.watch_again(Ticket::NONE, &one).is_none(), "no waker is cached");
        let first = watchers.watch(Ticket::NONE, one.clone());
        assert!(first.is_new && first.before.is_none());
        let again = watchers.watch_again(first.ticket, &one).expect("it waits already");
        assert!(again.ticket == first.ticket && !again.is_new);
        assert!(watchers.watch_again(Ticket::NONE, &one).is_none(), "this waker waits for another caller");
        assert!(watchers.watch_again(first.ticket, &other).is_none());
        // The state after `wake_first_locally`.
        watchers.turn += 1;
        assert!(watchers.is_empty() && watchers.take().is_none(), "the waker is only cached");
        assert!(watchers.unwatch(first.ticket).is_none() && watchers.unwatch(Ticket::NONE).is_none());
        let again = watchers.watch_again(first.ticket, &one).expect("the waker is cached");
        assert!(again.is_new && again.ticket != first.ticket && !watchers.is_empty());
        watchers.turn += 1;
        let other = watchers.watch(Ticket::NONE, other);
        assert!(other.is_new && other.before.is_some_and(|cached| cached.will_wake(&one)));
    }

    #[test]
    fn only_a_task_of_this_thread_is_woken_in_place() {
        let mut watchers = Watchers::new();
        let stranger = watchers.watch(Ticket::NONE, Waker::from(Arc::new(Count::default()))).ticket;
        assert!(!watchers.wake_first_locally() && !watchers.is_empty());
        assert!(watchers.unwatch(stranger).is_some());
        let mut polls = 0;
        let outcome = RunLoop::new().block_on(poll_fn(|cx| {
            polls += 1;
            let again = watchers.watch_again(Ticket::NONE, cx.waker());
            assert_eq!(again.is_some(), polls > 1, "its waker is cached");
            if again.is_none() {
                watchers.watch(Ticket::NONE, cx.waker().clone());
            }
            if polls == 3 {
                return Poll::Ready(());
            }
            assert!(watchers.wake_first_locally() && watchers.is_empty());
            assert!(!watchers.wake_first_locally(), "no waker waits");
            Poll::Pending
        }));
        assert_eq!((outcome, polls), (Outcome::Value(()), 3));
    }

    #[test]
    fn a_stale_ticket_removes_no_watcher_when_32_bits_have_wrapped() {
        let waker = Waker::from(Arc::new(Count::default()));
        let mut watchers = Watchers::new();
        let stale = watchers.watch(Ticket::NONE, waker.clone()).ticket;
        assert!(watchers.take().is_some());
        // As if enough had waited since for 32-bit numbers to wrap around.
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
