//! `note(…)`: a line of a program's own in the trace of its simulation.

use core::fmt;
use std::sync::Arc;

use convoke_core::env::Local;
use convoke_task::current;

use crate::world::{HostId, World};

/// The host that a task runs on.
pub(crate) static CURRENT_HOST: Local<CurrentHost> = Local::inherited("simulated host");

#[derive(Clone)]
pub(crate) struct CurrentHost {
    pub(crate) world: Arc<World>,
    pub(crate) host: HostId,
}

/// Writes a line into the trace of the simulation of the running task, with the time and the name of its
/// host.
///
/// The trace is printed if the run fails; `CONVOKE_TRACE=1` in the environment prints each line at once.
/// Outside a simulation it does nothing, so programs may always call it.
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
    if let Some(current_host) = current::local(&CURRENT_HOST) {
        // Formatted before the lock is taken, because it is code of the program.
        let what = what.to_string();
        current_host.world.with(|state| {
            if state.writes(current_host.host) {
                let line = format!("{}: {what}", state.name(current_host.host));
                state.note(line);
            }
        });
    }
}
