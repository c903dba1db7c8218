//! The calls of `tokio_guest` in a guest runtime, so that a report about tasks that are left can name them. tokio tells the number of
//! tasks, but not their names, nor the code that spawned them. So the number is compared before and after each poll of a guest.

use core::fmt;
use core::panic::Location;
use std::sync::PoisonError;

use convoke_core::raw::sync::Mutex;

/// Calls that are kept, at most: the first ones, by their lines.
const MOST: usize = 64;

/// A line of the program that calls [`tokio_guest`](super::tokio_guest()): see [`TasksLeft::guests`](super::TasksLeft::guests).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestCall {
    location: &'static Location<'static>,
    spawned: usize,
}

impl GuestCall {
    /// Returns the line.
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }

    /// Returns the number of tasks that guests of this line were seen to spawn, those included that have ended. Tasks
    /// that were spawned by these tasks are not in it.
    pub fn spawned(&self) -> usize {
        self.spawned
    }
}

impl fmt::Display for GuestCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.spawned {
            0 => write!(f, "{}", self.location),
            spawned => write!(f, "{} ({spawned} spawned)", self.location),
        }
    }
}

/// The calls that a runtime has seen.
#[derive(Default)]
pub(super) struct GuestCalls(Mutex<Vec<GuestCall>>);

impl GuestCalls {
    /// Notes a call, and the tasks that a poll of its guest has spawned.
    pub(super) fn note(&self, location: &'static Location<'static>, spawned: usize) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match calls.iter().position(|call| call.location == location) {
            Some(index) => calls[index].spawned += spawned,
            None if calls.len() < MOST => calls.push(GuestCall { location, spawned }),
            None => {}
        }
    }

    /// Returns the calls; those that have spawned most tasks first.
    pub(super) fn list(&self) -> Vec<GuestCall> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        calls.sort_by_key(|call| core::cmp::Reverse(call.spawned));
        calls
    }
}
