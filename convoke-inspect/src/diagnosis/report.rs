//! Reports of a diagnosis, as values that print well.

use core::fmt;
use core::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::participant::Involved;
use crate::tree::Tree;

/// A problem, or a possible one. It prints as a few lines for people.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Finding {
    /// A task blocks its executor: it has been in one poll for longer than the limit, and still is.
    Stall(Stall),
    /// A stall has ended.
    StallOver(StallOver),
    /// A task waits for what one of its own futures holds, and does not poll that future.
    Futurelock(Futurelock),
    /// Tasks wait for each other in a cycle.
    Deadlock(Deadlock),
    /// No task has run for the limit, and tasks wait.
    Quiet(Quiet),
    /// A child was asked to stop before it ran, because its handle was dropped.
    Abandoned(Abandoned),
}

/// A task that blocks its executor.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stall {
    /// The task.
    pub task: Involved,
    /// The name of the thread that polls it.
    pub thread: Arc<str>,
    /// The minimum duration of the poll so far.
    pub lasted: Duration,
    /// The tasks that are queued meanwhile.
    pub queued: Vec<Involved>,
    /// True if the queued tasks must run on the same thread. Otherwise other threads of the executor may run
    /// them.
    pub behind_it: bool,
}

/// The end of a stall.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StallOver {
    /// The task.
    pub task: Involved,
    /// The name of the thread that polled it.
    pub thread: Arc<str>,
    /// The approximate duration of the poll.
    pub lasted: Duration,
    /// The number of tasks seen in the queue behind it that no other thread could run.
    pub delayed: usize,
    /// The approximate time for which the first of them was queued.
    pub longest_delay: Option<Duration>,
}

/// A task that waits for what one of its own futures holds, and does not poll that future.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Futurelock {
    /// The task.
    pub task: Involved,
    /// The location of the wait that does not end.
    pub waits_at: &'static Location<'static>,
    /// The location where the other future asked for what it holds; unknown if it took it by a `try_…`.
    pub asked_at: Option<&'static Location<'static>>,
    /// The way in which the other future holds it.
    pub owned: Owned,
}

/// The way in which a future that is not polled holds a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Owned {
    /// It was granted the permit while it waited, and was not polled since: this is certain.
    Handed,
    /// It has held the permit for as long as the task has waited. It may still release it, if it is polled
    /// after all (beside the wait, in a `join`) or its guard was moved to another task.
    Held,
}

/// Tasks that wait for each other: each for what only others of them hold.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Deadlock {
    /// The waits, one for each task.
    pub waits: Vec<Entangled>,
    /// All live tasks.
    pub tree: Tree,
}

/// One wait of a [`Deadlock`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Entangled {
    /// The task that waits.
    pub task: Involved,
    /// The location of its wait.
    pub waits_at: &'static Location<'static>,
    /// The known holders, and where they asked for what they hold.
    pub held_by: Vec<(Involved, Option<&'static Location<'static>>)>,
}

/// A program in which no task has run for the limit.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Quiet {
    /// The minimum time since a task was last polled.
    pub lasted: Duration,
    /// All live tasks. They wait.
    pub tree: Tree,
}

/// A child that was asked to stop before it ran, because its handle was dropped.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Abandoned {
    /// The location where it was started.
    pub location: &'static Location<'static>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stall(stall) => stall.fmt(f),
            Self::StallOver(over) => over.fmt(f),
            Self::Futurelock(futurelock) => futurelock.fmt(f),
            Self::Deadlock(deadlock) => deadlock.fmt(f),
            Self::Quiet(quiet) => quiet.fmt(f),
            Self::Abandoned(abandoned) => abandoned.fmt(f),
        }
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stall: {} has held its executor for {:.0?}, and still does", self.task, self.lasted)?;
        write!(f, "\n  it runs on the thread `{}`", self.thread)?;
        match self.task.waits_at {
            Some(place) => write!(f, ", and waited last at {place}")?,
            None => f.write_str(", and has not waited yet at anything of Convoke's")?,
        }
        if !self.queued.is_empty() {
            let count = Count(self.queued.len(), "task is queued", "tasks are queued");
            let where_ = if self.behind_it { " behind it" } else { ", if no other thread takes them" };
            write!(f, "\n  {count}{where_}: {}", Involved::list(&self.queued))?;
        }
        f.write_str(
            "\n  help: use `blocking` for calls that block, and `checkpoint` in long computations; if it waits for a lock of `std`, \
             some task keeps its guard across an await: drop the guard before the await, or use `convoke::sync::Mutex`",
        )
    }
}

impl fmt::Display for StallOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stall over: {} released its executor after about {:.0?}", self.task, self.lasted)?;
        if let Some(longest) = self.longest_delay {
            let count = Count(self.delayed, "task was", "tasks were");
            write!(f, "\n  {count} queued behind it, for up to about {longest:.0?}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Futurelock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "futurelock: {} waits for what one of its own futures holds", self.task)?;
        write!(f, "\n  it waits at {}", self.waits_at)?;
        match (self.owned, self.asked_at) {
            (Owned::Handed, Some(place)) => {
                write!(
                    f,
                    "\n  the future that asked at {place} was granted it, and has not been polled since"
                )?;
            }
            (Owned::Held, Some(place)) => {
                write!(
                    f,
                    "\n  the future that asked at {place} has held it all the time; is it still polled?"
                )?;
            }
            (_, None) => f.write_str("\n  the same task holds what it took without waiting")?,
        }
        f.write_str(
            "\n  help: poll both futures side by side (`join`, children of a scope), or drop the one that is set aside \
             before this wait",
        )
    }
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "deadlock: {} for each other", Count(self.waits.len(), "task waits", "tasks wait"))?;
        for Entangled { task, waits_at, held_by } in &self.waits {
            write!(f, "\n  {task} waits at {waits_at}")?;
            for (holder, asked_at) in held_by {
                write!(f, "\n    for what {holder} holds")?;
                if let Some(place) = asked_at {
                    write!(f, ", asked for at {place}")?;
                }
            }
        }
        write!(f, "\n{}", Indented(&self.tree))
    }
}

impl fmt::Display for Quiet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "quiet: no task has run for {:.0?}; these tasks wait", self.lasted)?;
        write!(f, "\n{}", Indented(&self.tree))
    }
}

impl fmt::Display for Abandoned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "abandoned: the child that was started at {} was asked to stop before it ran: its handle was dropped\n  help: \
             `let _ =` drops a handle at once; await the handle, or start the child with `spawn`",
            self.location
        )
    }
}

/// Prints a tree indented, limited to 60 lines.
struct Indented<'a>(&'a Tree);

impl fmt::Display for Indented<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, line) in format!("{:.60}", self.0).lines().enumerate() {
            write!(f, "{}  {line}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

/// A number with a singular and a plural phrase.
struct Count(usize, &'static str, &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, if self.0 == 1 { self.1 } else { self.2 })
    }
}
