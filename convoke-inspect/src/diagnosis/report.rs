//! What a diagnosis has to say, as values that print well.

use core::fmt;
use core::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::involved::Involved;
use crate::tree::Tree;

/// Something that is wrong, or looks so. It prints as a few lines for people.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Report {
    /// A task holds its executor: it has been in one poll for longer than the limit, and still is.
    Stall(Stall),
    /// That is over.
    StallOver(StallOver),
    /// A task waits for what one of its own futures has, which it does not poll.
    Futurelock(Futurelock),
    /// Tasks wait for each other, in a ring.
    Deadlock(Deadlock),
    /// Nothing has happened for long, and tasks wait.
    Quiet(Quiet),
}

/// A task holds its executor.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stall {
    /// Which task.
    pub task: Involved,
    /// The name of the thread that polls it.
    pub thread: Arc<str>,
    /// For at least so long, until now.
    pub lasted: Duration,
    /// The tasks that are queued meanwhile.
    pub queued: Vec<Involved>,
    /// Whether they are queued behind this one: they stay on the same thread. Else other threads of its executor may take
    /// them.
    pub behind_it: bool,
}

/// A task has let its executor go.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StallOver {
    /// Which task.
    pub task: Involved,
    /// The name of the thread that polled it.
    pub thread: Arc<str>,
    /// About how long it took.
    pub lasted: Duration,
    /// How many tasks were seen in the queue behind it, that no other thread could take.
    pub delayed: usize,
    /// About how long the first of them had been seen there.
    pub longest_delay: Option<Duration>,
}

/// A task waits for what one of its own futures has, which it does not poll.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Futurelock {
    /// Which task.
    pub task: Involved,
    /// Where the wait was asked for that does not end.
    pub waits_at: &'static Location<'static>,
    /// Where the other future asked for what it has; unknown if it took it by a `try_…`.
    pub asked_at: Option<&'static Location<'static>>,
    /// What the other future has.
    pub owned: Owned,
}

/// What a future has that is not polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Owned {
    /// It was handed the permit while it waited, and was not polled since: this is certain.
    Handed,
    /// It has held the permit for as long as the task has waited. If it is polled after all (beside the wait, in a `join`), or
    /// the guard was given to another task, it may yet be given back.
    Held,
}

/// Tasks that wait for each other: each for what only others of them have.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Deadlock {
    /// Each wait.
    pub waits: Vec<Entangled>,
    /// All tasks there are.
    pub tree: Tree,
}

/// One wait of a [`Deadlock`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Entangled {
    /// Who waits.
    pub task: Involved,
    /// Where it asked for what it waits for.
    pub waits_at: &'static Location<'static>,
    /// Who has it, and where they asked for it, as far as is known.
    pub held_by: Vec<(Involved, Option<&'static Location<'static>>)>,
}

/// Nothing has happened for long.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Quiet {
    /// For at least so long no task was polled.
    pub lasted: Duration,
    /// All tasks there are: they wait.
    pub tree: Tree,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stall(stall) => stall.fmt(f),
            Self::StallOver(over) => over.fmt(f),
            Self::Futurelock(futurelock) => futurelock.fmt(f),
            Self::Deadlock(deadlock) => deadlock.fmt(f),
            Self::Quiet(quiet) => quiet.fmt(f),
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
        write!(
            f,
            "\n  help: `blocking` is for work that blocks; long computations let others run by `checkpoint`"
        )
    }
}

impl fmt::Display for StallOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stall over: {} has let its executor go after about {:.0?}", self.task, self.lasted)?;
        if let Some(longest) = self.longest_delay {
            let count = Count(self.delayed, "task was", "tasks were");
            write!(f, "\n  {count} queued behind it, for up to about {longest:.0?}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Futurelock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "futurelock: {} waits for what one of its own futures has", self.task)?;
        write!(f, "\n  it waits at {}", self.waits_at)?;
        match (self.owned, self.asked_at) {
            (Owned::Handed, Some(place)) => {
                write!(
                    f,
                    "\n  the future that asked at {place} was handed it, and has not been polled since"
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
                write!(f, "\n    for what {holder} has")?;
                if let Some(place) = asked_at {
                    write!(f, " since it asked at {place}")?;
                }
            }
        }
        write!(f, "\n{}", Indented(&self.tree))
    }
}

impl fmt::Display for Quiet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "quiet: no task has run for {:.0?}; these wait", self.lasted)?;
        write!(f, "\n{}", Indented(&self.tree))
    }
}

/// A tree, further to the right, and no longer than a screen or two.
struct Indented<'a>(&'a Tree);

impl fmt::Display for Indented<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, line) in format!("{:.60}", self.0).lines().enumerate() {
            write!(f, "{}  {line}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

/// So many, in words for one and for several.
struct Count(usize, &'static str, &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, if self.0 == 1 { self.1 } else { self.2 })
    }
}
