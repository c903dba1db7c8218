//! The trace: what has happened, in order, to be read by people and to be compared whole.

use core::time::Duration;
use std::collections::VecDeque;
use std::fmt;

/// The maximum number of lines in a trace. Older lines are dropped; the fingerprint covers all.
pub const TRACE_LINES: usize = 10_000;

/// An event or a packet in the trace of a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceLine {
    at: Duration,
    what: String,
    kind: LineKind,
}

/// The kind of a trace line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// Packets on the network, and notes of programs: frequent.
    Traffic,
    /// An action on a host or the network, or the end of a program.
    Event,
}

impl TraceLine {
    /// Returns true for the few lines that are not traffic.
    pub(crate) fn is_event(&self) -> bool {
        self.kind == LineKind::Event
    }

    /// Returns the simulated time of the line.
    pub fn at(&self) -> Duration {
        self.at
    }

    /// Returns the text of the line.
    pub fn what(&self) -> &str {
        &self.what
    }
}

impl fmt::Display for TraceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12.6}s  {}", self.at.as_secs_f64(), self.what)
    }
}

/// The lines, and a fingerprint of them and of all decisions of the scheduler.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) lines: VecDeque<TraceLine>,
    pub(crate) fingerprint: u64,
    /// True if each line is printed when it is added.
    prints: bool,
}

/// The environment variable that prints each line when it is added.
pub(crate) const PRINTS: &str = "CONVOKE_TRACE";

impl Trace {
    pub(crate) fn new() -> Self {
        let prints = std::env::var_os(PRINTS).is_some_and(|said| said != "0");
        Self { lines: VecDeque::new(), fingerprint: 0xcbf2_9ce4_8422_2325, prints }
    }

    /// Prints text that is not part of the trace, if lines are printed.
    pub(crate) fn print(&self, what: impl FnOnce() -> String) {
        if self.prints {
            eprintln!("{}", what());
        }
    }

    pub(crate) fn note(&mut self, at: Duration, kind: LineKind, what: String) {
        self.hash(&at.as_nanos().to_le_bytes());
        self.hash(what.as_bytes());
        if self.lines.len() == TRACE_LINES {
            self.lines.pop_front();
        }
        let line = TraceLine { at, what, kind };
        self.print(|| line.to_string());
        self.lines.push_back(line);
    }

    pub(crate) fn note_choice(&mut self, chosen: usize) {
        self.hash(&(chosen as u64).to_le_bytes());
    }

    /// Adds to the fingerprint, by FNV-1a: short, and good enough to tell two runs apart.
    fn hash(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.fingerprint = (self.fingerprint ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}
