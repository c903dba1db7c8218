//! Prints a tree, with lines that connect a task to its children.

use core::fmt;

use super::{TaskNode, TaskRecord, TaskState, Tree};

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("no tasks");
        }
        print(&self.tasks, 0, self.tasks.len(), f)
    }
}

impl fmt::Display for TaskNode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(&self.tree.tasks, self.index, self.record().end, f)
    }
}

/// The maximum indentation. Deeper tasks show their depth instead: a chain of thousands of tasks would print
/// as a triangle of spaces.
const MOST_INDENTED: usize = 32;

/// Prints the tasks from `from` to `to`. The first of them has the smallest depth.
fn print(tasks: &[TaskRecord], from: usize, to: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let top = tasks[from].depth;
    let most = f.precision().unwrap_or(usize::MAX);
    // For each ancestor: the end of its descendants, and whether it has a later sibling.
    let mut above: Vec<(usize, bool)> = Vec::new();
    for (line, task) in tasks[from..to].iter().enumerate() {
        if line == most {
            return write!(f, "\n… and {} more", to - from - line);
        }
        if line > 0 {
            f.write_str("\n")?;
        }
        let depth = task.depth - top;
        above.truncate(depth);
        if depth > MOST_INDENTED {
            write!(f, "[{depth}] ")?;
        } else {
            for (_, more) in above.iter().skip(1) {
                f.write_str(if *more { "│  " } else { "   " })?;
            }
        }
        let more = above.last().is_some_and(|(end, _)| task.end < *end);
        if task.depth > top {
            f.write_str(if more { "├─ " } else { "└─ " })?;
        }
        write!(f, "{task}")?;
        above.push((task.end, more));
    }
    Ok(())
}

impl fmt::Display for TaskRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "`{name}` ({}) {}", self.location, self.state)?,
            None => write!(f, "task ({}) {}", self.location, self.state)?,
        }
        if self.stop_asked { f.write_str(", and was asked to stop") } else { Ok(()) }
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("is running"),
            Self::Queued => f.write_str("is queued"),
            Self::Waits(Some(place)) => write!(f, "waits at {place}"),
            Self::Waits(None) => {
                f.write_str("waits for a future of another crate; `stoppable(…)` around it shows where")
            }
            Self::Leaving => f.write_str("is leaving"),
        }
    }
}
