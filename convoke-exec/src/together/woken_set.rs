//! A set of futures inside one task, of which only those are polled that were woken. `join` and `race` of vectors stand on it,
//! and the local scope.
//!
//! 1. A child's key is its place in the list. It may be on the board, or in the round, for a child that has ended or for a
//!    new one in its place: the bell says whether the child that is there now was woken.
//! 2. Futures are boxed and stay where they are; the set itself may be moved.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::Waker;
use std::collections::VecDeque;
use std::sync::Arc;

use convoke_core::{Outcome, Panic};

use super::bells::{Bell, Bells};
use super::ended::ended;
use crate::region::Region;

/// See the head of this file. `T` is what the owner wants to know of each child.
pub(crate) struct WokenSet<F: ?Sized, T = ()> {
    children: Vec<Option<Child<F, T>>>,
    free: Vec<usize>,
    bells: Bells,
    /// Those to be polled before the owner waits again.
    round: VecDeque<usize>,
}

struct Child<F: ?Sized, T> {
    future: Pin<Box<F>>,
    bell: Arc<Bell>,
    /// Of the bell. Made once: making one counts.
    waker: Waker,
    begun: bool,
    tag: T,
}

impl<F: Future + ?Sized, T> WokenSet<F, T> {
    pub(crate) fn new() -> Self {
        Self { children: Vec::new(), free: Vec::new(), bells: Bells::new(), round: VecDeque::new() }
    }

    pub(crate) fn bells(&self) -> &Bells {
        &self.bells
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.children.len()
    }

    /// Adds a child; it is polled in this round.
    pub(crate) fn insert(&mut self, future: Pin<Box<F>>, tag: T) {
        let key = self.free.pop().unwrap_or_else(|| {
            self.children.push(None);
            self.children.len() - 1
        });
        let bell = self.bells.bell(key);
        let waker = Waker::from(bell.clone());
        self.children[key] = Some(Child { future, bell, waker, begun: false, tag });
        self.round.push_back(key);
    }

    /// Has every child polled, woken or not: a stop was asked for.
    pub(crate) fn ring_all(&self) {
        for child in self.children.iter().flatten() {
            child.bell.ring();
        }
    }

    /// The owner is polled: all that were woken are in the round.
    pub(crate) fn begin_round(&mut self) {
        self.bells.take_rung(&mut self.round);
    }

    /// The next of the round. Not all keys lead to a child: see rule 1.
    pub(crate) fn next(&mut self) -> Option<usize> {
        self.round.pop_front()
    }

    /// Polls a child if it was woken. What has come of it, if it has ended; then it is gone.
    pub(crate) fn poll(&mut self, key: usize, region: &Region) -> Option<(Outcome<F::Output>, T)> {
        let child = self.children.get_mut(key)?.as_mut()?;
        if !child.bell.answer() {
            return None;
        }
        child.begun = true;
        let polled = Panic::catch(|| region.poll_one(child.future.as_mut(), &child.waker));
        let mut tag = None;
        let outcome = ended(polled, region, || {
            if let Some(child) = self.children[key].take() {
                child.bell.silence();
                self.free.push(key);
                tag = Some(child.tag);
                drop(child.future);
            }
        })?;
        Some((outcome, tag?))
    }

    /// Drops children that were never polled. Their destructors may panic: the first panic.
    pub(crate) fn drop_unbegun(&mut self, region: &Region) -> Option<Panic> {
        let mut first = None;
        for (key, child) in self.children.iter_mut().enumerate() {
            if child.as_ref().is_some_and(|child| !child.begun) {
                self.free.push(key);
                let panic = Panic::catch(|| region.within(|| drop(child.take()))).err();
                first = first.or(panic);
            }
        }
        first
    }

    /// The round is over, and the owner waits. It is woken at once if a child was woken meanwhile.
    pub(crate) fn end_round(&self, waker: &Waker) {
        self.bells.wait(waker);
    }
}

impl<F: ?Sized, T> fmt::Debug for WokenSet<F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WokenSet")
            .field("children", &(self.children.len() - self.free.len()))
            .finish_non_exhaustive()
    }
}
