//! A set of futures inside one task, of which only those are polled that were woken. `join` and `race` of vectors stand on it,
//! and the local scope.
//!
//! 1. The key of a child that was woken is in one place: on the board, or in the round. One that is found there is of a
//!    child that was woken, or that has ended since; its place may have another tenant then, with another number.
//! 2. Futures are boxed and stay where they are; the set itself may be moved.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::Waker;
use std::collections::VecDeque;
use std::sync::Arc;

use convoke_core::raw::Frame;
use convoke_core::{Outcome, Panic};

use super::bells::{Bell, Bells, Key};
use super::ended::ended;
use crate::region::{BodyMark, Region};

/// See the head of this file. `T` is what the owner wants to know of each child.
pub(crate) struct WokenSet<F: ?Sized, T = ()> {
    children: Vec<Option<Child<F, T>>>,
    free: Vec<usize>,
    bells: Bells,
    /// Those to be polled before the owner waits again.
    round: VecDeque<Key>,
    /// How many children there were.
    serial: u64,
}

struct Child<F: ?Sized, T> {
    future: Pin<Box<F>>,
    serial: u64,
    bell: Arc<Bell>,
    /// Of the bell. Made once: making one counts.
    waker: Waker,
    begun: bool,
    mark: BodyMark,
    tag: T,
}

impl<F: Future + ?Sized, T> WokenSet<F, T> {
    pub(crate) fn new() -> Self {
        Self {
            children: Vec::new(),
            free: Vec::new(),
            bells: Bells::new(),
            round: VecDeque::new(),
            serial: 0,
        }
    }

    pub(crate) fn bells(&self) -> &Bells {
        &self.bells
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.children.len()
    }

    /// Adds a child; it is polled in this round.
    pub(crate) fn insert(&mut self, future: Pin<Box<F>>, tag: T) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.children.push(None);
            self.children.len() - 1
        });
        let serial = self.serial;
        self.serial += 1;
        let bell = self.bells.bell(Key { place, serial });
        let waker = Waker::from(bell.clone());
        self.children[place] =
            Some(Child { future, serial, bell, waker, begun: false, mark: BodyMark::default(), tag });
        self.round.push_back(Key { place, serial });
    }

    /// A bell for something that its owner polls beside the children, when this key comes up. It does so in this round.
    pub(crate) fn bell_beside(&mut self, key: Key) -> Arc<Bell> {
        self.round.push_back(key);
        self.bells.bell(key)
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

    /// The next of the round.
    pub(crate) fn next(&mut self) -> Option<Key> {
        self.round.pop_front()
    }

    /// Polls the child of this key, which [`next`](WokenSet::next) has said, if it is still there. What has come of it, if it
    /// has ended; then it is gone.
    pub(crate) fn poll(&mut self, key: Key, region: &Region) -> Option<(Outcome<F::Output>, T)> {
        let child = self.children[key.place].as_mut().filter(|child| child.serial == key.serial)?;
        child.bell.answer();
        child.begun = true;
        let polled = Panic::catch(|| region.poll_one(child.future.as_mut(), &child.mark, &child.waker, true));
        let mut tag = None;
        let outcome = ended(polled, region, || {
            if let Some(child) = self.children[key.place].take() {
                child.bell.silence();
                self.free.push(key.place);
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
        // Those that were not polled in this round have said so before.
        if self.children.iter().flatten().any(|child| child.mark.is_held()) {
            Frame::hold_current();
        }
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
