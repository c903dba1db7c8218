//! The contexts that connections run on: each where the request runs that it was opened for, so that its bytes stay on one core.

use std::sync::Arc;

use convoke_io::context::{CONTEXTS, Contexts, IoExecutor, current_driver, driver_of_executor};
use convoke_task::current;

/// The index of a context of the runtime; none for the executor that the client was run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(Option<usize>);

/// The contexts of the runtime that the client runs on, if there are several. They outlive the client. Other contexts may not run
/// any more when it is closed, so requests that are sent from there get a connection on its own executor.
#[derive(Debug)]
pub(super) struct Places {
    contexts: Option<Contexts>,
}

impl Places {
    pub(super) fn of_current_task() -> Self {
        Self { contexts: current::local(&CONTEXTS).filter(|contexts| contexts.all().len() > 1) }
    }

    /// Returns the place of the current task.
    pub(super) fn here(&self) -> Place {
        let Some(contexts) = &self.contexts else { return Place::default() };
        let Ok(driver) = current_driver() else { return Place::default() };
        let is_here = |context: &IoExecutor| {
            driver_of_executor(context).is_some_and(|other| Arc::ptr_eq(&other, &driver))
        };
        Place(contexts.all().iter().position(is_here))
    }

    /// Returns the executor of a place; `None` for that of the client.
    pub(super) fn executor(&self, place: Place) -> Option<&IoExecutor> {
        self.contexts.as_ref()?.all().get(place.0?)
    }
}
