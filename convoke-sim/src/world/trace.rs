//! The trace: what has happened, in order, to be read by people and to be compared whole.

use core::mem;
use core::time::Duration;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, OnceLock};

use super::WorldState;
use super::event::{Event, Fate, LineKind, Payload, Way};
use super::hosts::Host;

/// The number of last lines that a trace keeps. The fingerprint covers all lines.
pub const TRACE_LINES: usize = 10_000;

/// The number of older lines that a trace keeps beside the last [`TRACE_LINES`]: this number of breaks (connections
/// that broke, and faults), and this number of other events, such as starts and ends of programs. Older traffic is
/// dropped.
pub const TRACE_EVENTS: usize = 10_000;

/// An event or a packet in the trace of a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceLine {
    at: Duration,
    what: String,
    kind: LineKind,
}

impl TraceLine {
    /// Returns true for the few lines that are not traffic.
    pub(crate) fn is_event(&self) -> bool {
        self.kind != LineKind::Traffic
    }

    /// Returns true if the line tells of a connection that has broken or of a fault: a crash, a partition, a
    /// clock that jumps, an injected error.
    pub fn is_break(&self) -> bool {
        self.kind == LineKind::Break
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
    last: VecDeque<Entry>,
    /// Events before `last`.
    events: VecDeque<Entry>,
    /// Breaks before `last`.
    breaks: VecDeque<Entry>,
    /// Number of lines so far.
    pub(crate) count: u64,
    pub(crate) fingerprint: u64,
    /// True if each line is printed when it is added.
    prints: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// Number of lines before it.
    number: u64,
    at: Duration,
    event: Event,
}

/// The environment variable that prints each line when it is added.
pub(crate) const PRINTS: &str = "CONVOKE_TRACE";

impl Trace {
    pub(crate) fn new() -> Self {
        let prints = std::env::var_os(PRINTS).is_some_and(|said| said != "0");
        Self {
            last: VecDeque::new(),
            events: VecDeque::new(),
            breaks: VecDeque::new(),
            count: 0,
            fingerprint: 0xcbf2_9ce4_8422_2325,
            prints,
        }
    }

    /// Prints text that is not part of the trace, if lines are printed.
    pub(crate) fn print(&self, what: impl FnOnce() -> String) {
        if self.prints {
            eprintln!("{}", what());
        }
    }

    fn add(&mut self, at: Duration, event: Event, hosts: &[Host]) {
        self.hash(at.as_nanos() as u64);
        event.for_each_word(|word| self.hash(word));
        if self.last.len() == TRACE_LINES
            && let Some(oldest) = self.last.pop_front()
        {
            match oldest.event.kind() {
                LineKind::Traffic => {}
                LineKind::Event => keep(&mut self.events, oldest),
                LineKind::Break => keep(&mut self.breaks, oldest),
            }
        }
        let entry = Entry { number: self.count, at, event };
        self.print(|| entry.line(&names(hosts)).to_string());
        self.last.push_back(entry);
        self.count += 1;
    }

    pub(crate) fn note_choice(&mut self, chosen: usize) {
        self.hash(chosen as u64);
    }

    /// Adds to the fingerprint: FNV-1a, by words and with a shift, so that high bits have an effect on low
    /// ones. It only has to tell two runs apart.
    fn hash(&mut self, word: u64) {
        let mixed = (self.fingerprint ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.fingerprint = mixed ^ mixed >> 32;
    }

    /// Removes all lines that are kept, and returns them in order.
    fn take_lines(&mut self, hosts: &[Host]) -> RecordedTrace {
        let mut entries: Vec<Entry> = mem::take(&mut self.events).into();
        entries.extend(mem::take(&mut self.breaks));
        entries.sort_by_key(|entry| entry.number);
        entries.extend(mem::take(&mut self.last));
        RecordedTrace(Arc::new(Record { entries, hosts: names(hosts), lines: OnceLock::new() }))
    }
}

fn names(hosts: &[Host]) -> Vec<Arc<str>> {
    hosts.iter().map(|host| host.name.clone()).collect()
}

/// The trace of a run that has ended. It becomes text when it is first read: most runs of an exploration do
/// not fail, and their traces are not read. Clones share it.
#[derive(Clone)]
pub(crate) struct RecordedTrace(Arc<Record>);

struct Record {
    entries: Vec<Entry>,
    /// The names of the hosts, by their index.
    hosts: Vec<Arc<str>>,
    lines: OnceLock<Vec<TraceLine>>,
}

impl RecordedTrace {
    pub(crate) fn lines(&self) -> &[TraceLine] {
        let Record { entries, hosts, lines } = &*self.0;
        lines.get_or_init(|| entries.iter().map(|entry| entry.line(hosts)).collect())
    }
}

impl PartialEq for RecordedTrace {
    fn eq(&self, other: &Self) -> bool {
        self.0.entries == other.0.entries && self.0.hosts == other.0.hosts
    }
}

impl Eq for RecordedTrace {}

impl fmt::Debug for RecordedTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.lines()).finish()
    }
}

/// Adds a line that is not among the last ones any more.
fn keep(older: &mut VecDeque<Entry>, entry: Entry) {
    if older.len() == TRACE_EVENTS {
        older.pop_front();
    }
    older.push_back(entry);
}

impl Entry {
    fn line(&self, hosts: &[Arc<str>]) -> TraceLine {
        TraceLine { at: self.at, what: self.event.text(hosts), kind: self.event.kind() }
    }
}

impl WorldState {
    /// Notes a line of a program.
    pub(crate) fn note(&mut self, text: String) {
        self.note_text(LineKind::Traffic, text);
    }

    /// Notes an action on a host, the end of a program, or a connection that could not be made.
    pub(crate) fn note_event(&mut self, text: String) {
        self.note_text(LineKind::Event, text);
    }

    /// Notes a connection that has broken, or a fault.
    pub(crate) fn note_break(&mut self, text: String) {
        self.note_text(LineKind::Break, text);
    }

    fn note_text(&mut self, kind: LineKind, text: String) {
        self.trace.add(self.now, Event::Text { kind, text: text.into() }, &self.hosts);
    }

    /// Notes a packet, unless it stays inside its host.
    pub(super) fn note_packet(&mut self, way: Way, payload: Payload, fate: Fate) {
        if !way.is_inside() {
            self.trace.add(self.now, Event::Packet { way, payload, fate }, &self.hosts);
        }
    }

    /// Removes all lines of the trace that are kept, and returns them in order.
    pub(crate) fn take_trace(&mut self) -> RecordedTrace {
        self.trace.take_lines(&self.hosts)
    }
}
