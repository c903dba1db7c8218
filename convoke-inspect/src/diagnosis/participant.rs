//! A task in a report, copied out of the tree: the task may be gone when the report is read.

use core::fmt;
use core::panic::Location;
use std::sync::Arc;

use crate::tree::{TaskNode, TaskState};

/// A task in a [`Finding`](super::Finding). It prints as its name and the location where it was started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Involved {
    /// Its name, if it has one.
    pub name: Option<Arc<str>>,
    /// The location where it was started.
    pub location: &'static Location<'static>,
    /// The location where it waits or last waited, if that was recorded while it was watched. Only Convoke's
    /// own futures report it.
    pub waits_at: Option<&'static Location<'static>>,
}

impl Involved {
    pub(super) fn of(node: TaskNode<'_>) -> Self {
        Self { name: node.shared_name(), location: node.location(), waits_at: node.waited_at() }
    }

    /// Prints several tasks, the first few by name.
    pub(super) fn list(all: &[Self]) -> impl fmt::Display {
        /// A longer list is not readable.
        const NAMED: usize = 5;
        fmt::from_fn(move |f| {
            for (index, one) in all.iter().take(NAMED).enumerate() {
                write!(f, "{}{one}", if index == 0 { "" } else { ", " })?;
            }
            if all.len() > NAMED { write!(f, " and {} more", all.len() - NAMED) } else { Ok(()) }
        })
    }
}

/// Returns true if it waits: it is neither polled nor queued.
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
