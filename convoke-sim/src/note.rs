//! `note(…)`: a line of a program's own in the trace of its simulation, between what the network says.

use core::fmt;
use std::sync::Arc;

use convoke_core::env::Local;
use convoke_task::current;

use crate::world::{HostId, World};

/// On which host a task runs.
pub(crate) static HERE: Local<Here> = Local::inherited("simulated host");

#[derive(Clone)]
pub(crate) struct Here {
    pub(crate) world: Arc<World>,
    pub(crate) host: HostId,
}

/// Writes a line into the trace of the simulation that the running task is in, with the time and the name of its host. It is
/// printed if the run fails, and with `CONVOKE_TRACE=1` in the environment at once. Outside of simulations it does nothing,
/// so that a program may do so wherever it runs.
///
/// ```
/// use convoke::sim::{Sim, note};
///
/// let mut sim = Sim::new(1);
/// sim.host("ada").run(|| async { note("becomes leader") });
/// let report = sim.run();
/// assert!(report.trace().iter().any(|line| line.what() == "ada: becomes leader"));
/// ```
pub fn note(what: impl fmt::Display) {
    if let Some(here) = current::local(&HERE) {
        // Formatted before: it is code of the program.
        let what = what.to_string();
        here.world.with(|state| {
            if state.writes(here.host) {
                let line = format!("{}: {what}", state.name(here.host));
                state.note(line);
            }
        });
    }
}
