//! The result of a run that has not failed.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use super::Ending;
use crate::world::{RecordedTrace, TraceLine};

/// The result of a run. Two runs of the same seed and the same programs have equal reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimReport {
    pub(super) seed: u64,
    pub(super) elapsed: Duration,
    pub(super) steps: usize,
    pub(super) hosts: Vec<HostReport>,
    pub(super) fingerprint: u64,
    pub(super) trace: RecordedTrace,
}

/// The result of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostReport {
    pub(super) name: Arc<str>,
    pub(super) ending: Ending,
    pub(super) starts: usize,
    pub(super) operations: usize,
    pub(super) ended_after: usize,
}

impl SimReport {
    /// Returns the seed of the run.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the simulated time that has passed.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Returns the number of pieces of work that were run.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Returns the hosts, in the order in which they were first named.
    pub fn hosts(&self) -> &[HostReport] {
        &self.hosts
    }

    /// Returns the host of this name.
    pub fn host(&self, name: &str) -> Option<&HostReport> {
        self.hosts.iter().find(|host| *host.name == *name)
    }

    /// Returns a hash of all trace lines and all decisions of the scheduler, in order.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Returns the last [`TRACE_LINES`](crate::TRACE_LINES) lines of the trace, and before them the last
    /// [`TRACE_EVENTS`](crate::TRACE_EVENTS) events and [breaks](TraceLine::is_break) of the older ones.
    pub fn trace(&self) -> &[TraceLine] {
        self.trace.lines()
    }
}

impl HostReport {
    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns how its program last ended.
    pub fn ending(&self) -> &Ending {
        &self.ending
    }

    /// Returns the number of starts of its program.
    pub fn starts(&self) -> usize {
        self.starts
    }

    /// Returns the number of operations that it has begun on sockets and disks.
    pub fn operations(&self) -> usize {
        self.operations
    }

    /// Returns the number of steps of the run after which its program last ended.
    pub fn ended_after(&self) -> usize {
        self.ended_after
    }
}

impl fmt::Display for SimReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elapsed = self.elapsed.as_secs_f64();
        write!(f, "seed {}: {elapsed:.3} s in {} steps", self.seed, self.steps)?;
        for host in &self.hosts {
            write!(f, "\n  {:<12} {} ({} operations", host.name, host.ending, host.operations)?;
            if host.starts > 1 {
                write!(f, ", started {} times", host.starts)?;
            }
            f.write_str(")")?;
        }
        Ok(())
    }
}
