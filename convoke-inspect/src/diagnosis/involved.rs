//! A task that a report speaks of, copied out of the tree: it may be gone when the report is read.

use core::fmt;
use core::panic::Location;
use std::sync::Arc;

use crate::tree::{TaskNode, TaskState};

/// A task that a [`Report`](super::Report) speaks of. It prints as its name and where it was started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Involved {
    /// Its name, if it was given one.
    pub name: Option<Arc<str>>,
    /// Where it was started.
    pub location: &'static Location<'static>,
    /// Where it waits, or waited last, if it has said so while it was watched: futures that are not Convoke's do not.
    pub waits_at: Option<&'static Location<'static>>,
}

impl Involved {
    pub(super) fn of(node: TaskNode<'_>) -> Self {
        Self { name: node.shared_name(), location: node.location(), waits_at: node.waited_at() }
    }

    /// Several of them, the first few by name.
    pub(super) fn list(all: &[Self]) -> impl fmt::Display {
        /// More than that nobody reads.
        const NAMED: usize = 5;
        fmt::from_fn(move |f| {
            for (index, one) in all.iter().take(NAMED).enumerate() {
                write!(f, "{}{one}", if index == 0 { "" } else { ", " })?;
            }
            if all.len() > NAMED { write!(f, " and {} more", all.len() - NAMED) } else { Ok(()) }
        })
    }
}

/// Whether it waits, this moment: it is neither run nor about to be.
pub(super) fn is_idle(node: TaskNode<'_>) -> bool {
    matches!(node.state(), TaskState::Waits(_))
}

impl fmt::Display for Involved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "`{name}` ({})", self.location),
            None => write!(f, "the task ({})", self.location),
        }
    }
}
