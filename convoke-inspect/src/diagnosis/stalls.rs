//! Detection of stalls: for how long each thread's slot has not changed, and whether the task in it is still
//! being polled. There is no clock here: the caller passes the current time.
//!
//! A poll that is seen in one check, and again in a later one, has lasted at least for the time between. If
//! several slots contain the same task (it was polled on several threads), the one that changed last is where
//! it runs. If two of them changed between the same two checks, either may be it: the first is assumed, until
//! it changes again.

use core::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::participant::Involved;
use super::report::{Finding, Stall, StallOver};
use crate::tree::{TaskState, Tree, tree};
use convoke_core::raw::watching::PolledMark;

/// A thread, and which word of its slot.
type SlotId = (u64, bool);

/// The slots of all threads, as one watcher has seen them.
#[derive(Debug)]
pub(super) struct Stalls {
    mark: PolledMark,
    limit: Duration,
    threads: HashMap<SlotId, SlotRecord>,
    /// The number of checks so far.
    check: u64,
}

/// The slot of one thread.
#[derive(Debug)]
struct SlotRecord {
    task: usize,
    /// The check at which this poll was first seen, and its time.
    first: (u64, Instant),
    /// The last check at which the thread was seen.
    last: u64,
    name: Arc<str>,
    state: Poll,
}

#[derive(Debug)]
enum Poll {
    /// It may still run.
    Unknown,
    /// It is over. This cannot change until the slot does, so the tree need not be read again.
    Over,
    /// It has lasted for longer than the limit, and was reported.
    Reported(Box<Blocked>),
}

/// A task that blocks its executor, and the tasks queued behind it.
#[derive(Debug)]
struct Blocked {
    address: usize,
    task: Involved,
    thread: Arc<str>,
    owner_thread: u32,
    /// The tasks behind it, by address, and since when. Until its thread is free, no other thread can run
    /// them.
    behind: HashMap<usize, Instant>,
}

impl Stalls {
    pub(super) fn new(mark: PolledMark, limit: Duration) -> Self {
        Self { mark, limit, threads: HashMap::new(), check: 0 }
    }

    /// Checks all threads. Returns true if any has polled another task since the last check.
    pub(super) fn check(&mut self, now: Instant, reports: &mut Vec<Finding>) -> bool {
        let mut changed = self.read_slots(now, reports);
        let suspects: Vec<(SlotId, usize)> = self.suspects(now).collect();
        if !suspects.is_empty() {
            let tree = tree();
            // The slot was the same before and after the tree was read, so the tree shows this poll.
            changed |= self.read_slots(now, reports);
            for (place, task) in suspects {
                self.judge(place, task, &tree, now, reports);
            }
        }
        changed
    }

    fn read_slots(&mut self, now: Instant, reports: &mut Vec<Finding>) -> bool {
        self.check += 1;
        let (check, mut changed) = (self.check, false);
        let mut over = Vec::new();
        self.mark.read(|polled| {
            let seen = self.threads.entry(polled.place).or_insert_with(|| SlotRecord {
                task: 0,
                first: (check, now),
                last: check,
                name: polled.thread.name().unwrap_or("without a name").into(),
                state: Poll::Over,
            });
            seen.last = check;
            if !polled.same || seen.task != polled.task {
                changed |= polled.task != 0;
                over.extend(seen.take_reported());
                seen.task = polled.task;
                seen.first = (check, now);
                seen.state = if polled.task == 0 { Poll::Over } else { Poll::Unknown };
            }
        });
        self.threads.retain(|_, seen| {
            let there = seen.last == check;
            if !there {
                over.extend(seen.take_reported());
            }
            there
        });
        for (held, first) in over {
            self.move_or_report(held, first, now, reports);
        }
        changed
    }

    /// Handles the end of a reported poll on the thread where it was assumed to run. If the same task may be
    /// running on another thread, that one is assumed from now on; otherwise the poll is over.
    fn move_or_report(
        &mut self,
        held: Box<Blocked>,
        first: (u64, Instant),
        now: Instant,
        reports: &mut Vec<Finding>,
    ) {
        let mut others = self.threads.values_mut();
        let other = others.find(|seen| {
            seen.task == held.address && seen.first.0 == first.0 && matches!(seen.state, Poll::Unknown)
        });
        match other {
            Some(other) => other.state = Poll::Reported(held),
            None => reports.push(held.over(first.1, now)),
        }
    }

    /// Returns the threads whose current poll may have lasted for longer than the limit, with their tasks.
    fn suspects(&self, now: Instant) -> impl Iterator<Item = (SlotId, usize)> {
        self.threads.iter().filter_map(move |(place, seen)| {
            let long = now.saturating_duration_since(seen.first.1) >= self.limit;
            let suspect = long && !matches!(seen.state, Poll::Over) && self.is_assumed_to_run(*place, seen);
            suspect.then_some((*place, seen.task))
        })
    }

    /// Returns true if this is the thread on which its task is assumed to run.
    fn is_assumed_to_run(&self, place: SlotId, seen: &SlotRecord) -> bool {
        // A reported one has priority, so that the assumption does not change.
        let rank = |place: SlotId, seen: &SlotRecord| {
            (seen.first.0, matches!(seen.state, Poll::Reported(_)), Reverse(place))
        };
        let same = self.threads.iter().filter(|(_, other)| other.task == seen.task);
        same.map(|(place, other)| rank(*place, other)).max() == Some(rank(place, seen))
    }

    fn judge(&mut self, place: SlotId, task: usize, tree: &Tree, now: Instant, reports: &mut Vec<Finding>) {
        let Some(seen) = self.threads.get_mut(&place).filter(|seen| seen.task == task) else { return };
        if now.saturating_duration_since(seen.first.1) < self.limit {
            return;
        }
        let running = tree.at(task).filter(|node| node.state() == TaskState::Running);
        let Some(node) = running else {
            reports.extend(seen.take_reported().map(|(held, first)| held.over(first.1, now)));
            return;
        };
        let queued = |owner: u32| {
            tree.tasks().filter(move |node| node.state() == TaskState::Queued && node.owner_thread() == owner)
        };
        if let Poll::Reported(held) = &mut seen.state {
            held.see(queued(held.owner_thread).map(|node| node.address()), now);
            return;
        }
        let (owner, participant) = (node.owner_thread(), Involved::of(node));
        let thread = seen.name.clone();
        let mut held = Blocked {
            address: task,
            task: participant.clone(),
            thread,
            owner_thread: owner,
            behind: HashMap::new(),
        };
        held.see(queued(owner).map(|node| node.address()), now);
        seen.state = Poll::Reported(Box::new(held));
        reports.push(Finding::Stall(Stall {
            task: participant,
            thread: seen.name.clone(),
            lasted: now.saturating_duration_since(seen.first.1),
            queued: queued(owner).map(Involved::of).collect(),
            behind_it: owner != 0,
        }));
    }
}

impl SlotRecord {
    /// Marks the poll as over on this thread. Returns what was reported of it, and when it was first seen.
    fn take_reported(&mut self) -> Option<(Box<Blocked>, (u64, Instant))> {
        match core::mem::replace(&mut self.state, Poll::Over) {
            Poll::Reported(held) => Some((held, self.first)),
            Poll::Unknown | Poll::Over => None,
        }
    }
}

impl Blocked {
    fn over(self, since: Instant, now: Instant) -> Finding {
        let longest = self.behind.values().map(|since| now.saturating_duration_since(*since)).max();
        Finding::StallOver(StallOver {
            task: self.task,
            thread: self.thread,
            lasted: now.saturating_duration_since(since),
            delayed: self.behind.len(),
            longest_delay: longest,
        })
    }

    fn see(&mut self, queued: impl Iterator<Item = usize>, now: Instant) {
        // Other threads may run shared tasks, and then they would not be delayed.
        if self.owner_thread != 0 {
            for task in queued {
                self.behind.entry(task).or_insert(now);
            }
        }
    }
}
