//! Finding tasks that hold their executor: which slots have not changed for how long, and whether the task is still inside
//! its poll. It has no clock: whoever looks says what time it is.
//!
//! A poll that is seen at one look, and still at another, has lasted at least from the first to the second. Of several slots
//! with the same task in them (it was polled here and there) the one that changed last is where it runs. If two have changed
//! between the same two looks, it is one of them: the first is taken for it, until that one changes again.

use core::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::involved::Involved;
use super::report::{Report, Stall, StallOver};
use crate::tree::{TaskState, Tree, tree};
use convoke_core::raw::watching::Mark;

/// A thread, and which word of its slot.
type Place = (u64, bool);

/// What one watcher knows of the slots.
#[derive(Debug)]
pub(super) struct Stalls {
    mark: Mark,
    limit: Duration,
    threads: HashMap<Place, Seen>,
    /// Counts the looks.
    look: u64,
}

/// What is known of one thread.
#[derive(Debug)]
struct Seen {
    task: usize,
    /// At which look this poll was seen first, and what time it was.
    first: (u64, Instant),
    /// At which look the thread was seen last.
    last: u64,
    name: Arc<str>,
    state: Poll,
}

#[derive(Debug)]
enum Poll {
    /// It may be going on.
    Unknown,
    /// It is over. Then it stays so until the slot changes: there is no need to look at the tree again.
    Over,
    /// It has lasted for too long, and was reported.
    Reported(Box<Held>),
}

/// Who was seen in the queue behind a task that holds its executor.
#[derive(Debug)]
struct Held {
    address: usize,
    task: Involved,
    thread: Arc<str>,
    home: u32,
    /// By address: since when. While the one thread they stay on is held, nobody takes them out of its queue.
    behind: HashMap<usize, Instant>,
}

impl Stalls {
    pub(super) fn new(mark: Mark, limit: Duration) -> Self {
        Self { mark, limit, threads: HashMap::new(), look: 0 }
    }

    /// Looks at all threads. Says whether any has begun to poll a task since the last look.
    pub(super) fn look(&mut self, now: Instant, reports: &mut Vec<Report>) -> bool {
        let mut changed = self.look_at_slots(now, reports);
        let suspects: Vec<(Place, usize)> = self.suspects(now).collect();
        if !suspects.is_empty() {
            let tree = tree();
            // The tree is of a moment between two at which the slot was the same: it is of this poll.
            changed |= self.look_at_slots(now, reports);
            for (place, task) in suspects {
                self.judge(place, task, &tree, now, reports);
            }
        }
        changed
    }

    fn look_at_slots(&mut self, now: Instant, reports: &mut Vec<Report>) -> bool {
        self.look += 1;
        let (look, mut changed) = (self.look, false);
        let mut over = Vec::new();
        self.mark.look(|polled| {
            let seen = self.threads.entry(polled.place).or_insert_with(|| Seen {
                task: 0,
                first: (look, now),
                last: look,
                name: polled.thread.name().unwrap_or("without a name").into(),
                state: Poll::Over,
            });
            seen.last = look;
            if !polled.same || seen.task != polled.task {
                changed |= polled.task != 0;
                over.extend(seen.take_reported());
                seen.task = polled.task;
                seen.first = (look, now);
                seen.state = if polled.task == 0 { Poll::Over } else { Poll::Unknown };
            }
        });
        self.threads.retain(|_, seen| {
            let there = seen.last == look;
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

    /// The thread that was taken for the one that polls has begun another poll, or ended. If there is another that may be the
    /// one, it is; else the poll is over.
    fn move_or_report(
        &mut self,
        held: Box<Held>,
        first: (u64, Instant),
        now: Instant,
        reports: &mut Vec<Report>,
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

    /// The threads whose last poll may have lasted for too long, with their tasks.
    fn suspects(&self, now: Instant) -> impl Iterator<Item = (Place, usize)> {
        self.threads.iter().filter_map(move |(place, seen)| {
            let long = now.saturating_duration_since(seen.first.1) >= self.limit;
            let suspect = long && !matches!(seen.state, Poll::Over) && self.is_taken_for_it(*place, seen);
            suspect.then_some((*place, seen.task))
        })
    }

    /// Whether this is the thread on which its task runs, if it does.
    fn is_taken_for_it(&self, place: Place, seen: &Seen) -> bool {
        // That it was reported comes first: it stays the one.
        let rank = |place: Place, seen: &Seen| {
            (seen.first.0, matches!(seen.state, Poll::Reported(_)), Reverse(place))
        };
        let same = self.threads.iter().filter(|(_, other)| other.task == seen.task);
        same.map(|(place, other)| rank(*place, other)).max() == Some(rank(place, seen))
    }

    fn judge(&mut self, place: Place, task: usize, tree: &Tree, now: Instant, reports: &mut Vec<Report>) {
        let Some(seen) = self.threads.get_mut(&place).filter(|seen| seen.task == task) else { return };
        if now.saturating_duration_since(seen.first.1) < self.limit {
            return;
        }
        let running = tree.at(task).filter(|node| node.state() == TaskState::Running);
        let Some(node) = running else {
            reports.extend(seen.take_reported().map(|(held, first)| held.over(first.1, now)));
            return;
        };
        let queued = |home: u32| {
            tree.tasks().filter(move |node| node.state() == TaskState::Queued && node.home() == home)
        };
        if let Poll::Reported(held) = &mut seen.state {
            held.see(queued(held.home).map(|node| node.address()), now);
            return;
        }
        let (home, involved) = (node.home(), Involved::of(node));
        let thread = seen.name.clone();
        let mut held = Held { address: task, task: involved.clone(), thread, home, behind: HashMap::new() };
        held.see(queued(home).map(|node| node.address()), now);
        seen.state = Poll::Reported(Box::new(held));
        reports.push(Report::Stall(Stall {
            task: involved,
            thread: seen.name.clone(),
            lasted: now.saturating_duration_since(seen.first.1),
            queued: queued(home).map(Involved::of).collect(),
            behind_it: home != 0,
        }));
    }
}

impl Seen {
    /// The poll that was seen there is over, as far as this thread goes. What was reported of it, and since when it was seen.
    fn take_reported(&mut self) -> Option<(Box<Held>, (u64, Instant))> {
        match core::mem::replace(&mut self.state, Poll::Over) {
            Poll::Reported(held) => Some((held, self.first)),
            Poll::Unknown | Poll::Over => None,
        }
    }
}

impl Held {
    fn over(self, since: Instant, now: Instant) -> Report {
        let longest = self.behind.values().map(|since| now.saturating_duration_since(*since)).max();
        Report::StallOver(StallOver {
            task: self.task,
            thread: self.thread,
            lasted: now.saturating_duration_since(since),
            delayed: self.behind.len(),
            longest_delay: longest,
        })
    }

    fn see(&mut self, queued: impl Iterator<Item = usize>, now: Instant) {
        // Shared tasks are taken by other threads, which one cannot tell from standing in a queue.
        if self.home != 0 {
            for task in queued {
                self.behind.entry(task).or_insert(now);
            }
        }
    }
}
