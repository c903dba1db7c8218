//! What came of a run that has not failed.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use super::Ending;
use crate::world::TraceLine;

/// What came of a run. Two runs of the same seed and the same programs have equal reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub(super) seed: u64,
    pub(super) elapsed: Duration,
    pub(super) steps: usize,
    pub(super) hosts: Vec<HostReport>,
    pub(super) fingerprint: u64,
    pub(super) trace: Vec<TraceLine>,
}

/// What came of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostReport {
    pub(super) name: Arc<str>,
    pub(super) ending: Ending,
    pub(super) starts: usize,
    pub(super) operations: usize,
    pub(super) ended_after: usize,
}

impl Report {
    /// The seed of the run.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// How much time has passed in it.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// How many pieces of work were run.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// The hosts, in the order in which they were named first.
    pub fn hosts(&self) -> &[HostReport] {
        &self.hosts
    }

    /// A host.
    pub fn host(&self, name: &str) -> Option<&HostReport> {
        self.hosts.iter().find(|host| *host.name == *name)
    }

    /// A number that is another one if anything has happened in another order.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// What has happened on the network: the last [`TRACE_LINES`](crate::TRACE_LINES) lines.
    pub fn trace(&self) -> &[TraceLine] {
        &self.trace
    }
}

impl HostReport {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How its program ended, the last time that it did.
    pub fn ending(&self) -> &Ending {
        &self.ending
    }

    /// How often its program was started.
    pub fn starts(&self) -> usize {
        self.starts
    }

    /// How many operations it has begun on sockets.
    pub fn operations(&self) -> usize {
        self.operations
    }

    /// After how many steps of the run its program ended, the last time that it did.
    pub fn ended_after(&self) -> usize {
        self.ended_after
    }
}

impl fmt::Display for Report {
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
