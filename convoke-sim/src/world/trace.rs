//! What has happened, in order: to be read by people, and to be compared whole.

use core::time::Duration;
use std::collections::VecDeque;
use std::fmt;

/// So many lines are kept, the last ones. The fingerprint is of all.
pub const TRACE_LINES: usize = 10_000;

/// Something that has happened in the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceLine {
    at: Duration,
    what: String,
    kind: LineKind,
}

/// What a line tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// What goes over the network, and what programs say: much of it.
    Traffic,
    /// What was done to a host or to the network, or has become of a program.
    Event,
}

impl TraceLine {
    /// Whether it is one of the few that tell what was done to whom.
    pub(crate) fn is_event(&self) -> bool {
        self.kind == LineKind::Event
    }

    /// When it happened, by the world's time.
    pub fn at(&self) -> Duration {
        self.at
    }

    /// What happened.
    pub fn what(&self) -> &str {
        &self.what
    }
}

impl fmt::Display for TraceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12.6}s  {}", self.at.as_secs_f64(), self.what)
    }
}

/// The lines, and a fingerprint of them and of each choice of the scheduler.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) lines: VecDeque<TraceLine>,
    pub(crate) fingerprint: u64,
    /// Each line is printed when it comes.
    prints: bool,
}

/// The name of the variable that says that lines are printed when they come.
pub(crate) const PRINTS: &str = "CONVOKE_TRACE";

impl Trace {
    pub(crate) fn new() -> Self {
        let prints = std::env::var_os(PRINTS).is_some_and(|said| said != "0");
        Self { lines: VecDeque::new(), fingerprint: 0xcbf2_9ce4_8422_2325, prints }
    }

    /// What is no part of the run itself, if lines are printed.
    pub(crate) fn print(&self, what: impl FnOnce() -> String) {
        if self.prints {
            eprintln!("{}", what());
        }
    }

    pub(crate) fn note(&mut self, at: Duration, kind: LineKind, what: String) {
        self.stir(&at.as_nanos().to_le_bytes());
        self.stir(what.as_bytes());
        if self.lines.len() == TRACE_LINES {
            self.lines.pop_front();
        }
        let line = TraceLine { at, what, kind };
        self.print(|| line.to_string());
        self.lines.push_back(line);
    }

    pub(crate) fn note_choice(&mut self, chosen: usize) {
        self.stir(&(chosen as u64).to_le_bytes());
    }

    /// FNV-1a: short, and good enough to tell two runs apart.
    fn stir(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.fingerprint = (self.fingerprint ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}
