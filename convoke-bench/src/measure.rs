//! The measurement of a scenario: each contestant is calibrated once, then they take turns, one timed sample
//! each per repeat, so that disturbances of the machine affect all alike. Allocations are counted afterwards,
//! in a separate sample.

#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use crate::progress::Progress;
use crate::scenario::{Run, Scenario, ServerTime, Unit};
use crate::statistics::{Summary, summarise};

/// The amount of measurement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// Timed samples per contestant.
    pub(crate) repeat: u32,
    /// The target duration of one sample.
    pub(crate) sample: Duration,
}

/// The results of one contestant.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) peer: &'static str,
    /// In the unit of the scenario.
    pub(crate) cost_per_op: Summary,
    pub(crate) allocs_per_op: f64,
    pub(crate) instructions_per_op: Option<f64>,
    /// The processor time of the server, where another process does the work.
    pub(crate) server_time: Option<ServerTime>,
    pub(crate) ops_per_sample: u64,
}

/// Measures all contestants of a scenario, by turns.
pub(crate) fn measure(scenario: &Scenario, plan: &Plan, progress: &mut Progress) -> Vec<Measured> {
    let mut racers: Vec<Racer> = Vec::new();
    for contestant in &scenario.contestants {
        progress.step(contestant.peer, "calibrating");
        let mut run = (contestant.set_up)();
        let ops = calibrate(scenario, &mut *run, plan.sample);
        racers.push(Racer { peer: contestant.peer, run, ops, samples: Vec::new() });
    }
    for repeat in 0..plan.repeat {
        // Another contestant starts each repeat, so that none always runs after the same neighbour.
        let first = repeat as usize % racers.len().max(1);
        for turn in 0..racers.len() {
            let racer = &mut racers[(first + turn) % scenario.contestants.len()];
            progress.step(racer.peer, &format!("{} of {}", repeat + 1, plan.repeat));
            racer.run.renew(racer.ops);
            let cost = racer.run.run(racer.ops);
            racer.samples.push(cost / racer.ops as f64);
        }
    }
    racers.into_iter().map(|racer| racer.finish(scenario, progress)).collect()
}

/// Returns the time that `body` takes.
pub(crate) fn time(body: impl FnOnce()) -> Duration {
    let start = Instant::now();
    body();
    start.elapsed()
}

/// A measurement of the processor time of this process, all threads together, from its start to its end: the
/// cost of work that mostly waits.
pub(crate) struct ProcessorTime(Duration);

impl ProcessorTime {
    pub(crate) fn begin() -> Self {
        Self(Self::so_far())
    }

    pub(crate) fn end(self) -> Duration {
        Self::so_far() - self.0
    }

    fn so_far() -> Duration {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a valid `timespec` on our stack.
        let read = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
        assert_eq!(read, 0, "the clock of the process can be read");
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
    }
}

struct Racer {
    peer: &'static str,
    run: Box<dyn Run>,
    ops: u64,
    samples: Vec<f64>,
}

impl Racer {
    fn finish(mut self, scenario: &Scenario, progress: &mut Progress) -> Measured {
        progress.step(self.peer, "allocations");
        let server_time = self.run.server_time();
        let allocations = self.run.allocations(self.ops);
        Measured {
            peer: self.peer,
            cost_per_op: summarise(self.samples),
            allocs_per_op: allocations / (self.ops * scenario.lanes) as f64,
            instructions_per_op: None,
            server_time,
            ops_per_sample: self.ops,
        }
    }
}

/// Returns the number of ops that takes about `target`, in whole batches. This also warms up the contestant.
/// If the unit is not time, one batch is enough.
fn calibrate(scenario: &Scenario, run: &mut dyn Run, target: Duration) -> u64 {
    let target = target.as_nanos() as f64;
    let mut ops = scenario.whole_batches(1);
    loop {
        let cost = run.run(ops);
        if scenario.unit != Unit::Nanoseconds {
            return ops;
        }
        if cost >= target / 4.0 {
            let wanted = ops as f64 * target / cost;
            return scenario.whole_batches((wanted as u64).max(1));
        }
        ops = ops.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Bytes;

    /// A contestant that claims a fixed time per op, so that nothing here depends on a clock.
    fn scenario(nanos_per_op: u64) -> Scenario {
        Scenario::new("test", "one op is imaginary")
            .contestant("clockwork", move || move |ops| Duration::from_nanos(ops * nanos_per_op))
    }

    fn plan() -> Plan {
        Plan { repeat: 3, sample: Duration::from_millis(1) }
    }

    #[test]
    fn a_sample_is_as_long_as_planned() {
        let measured = measure(&scenario(100), &plan(), &mut Progress::silent());
        assert_eq!(measured[0].ops_per_sample, 10_000);
        assert_eq!(measured[0].cost_per_op, Summary { median: 100.0, spread: 0.0 });
    }

    #[test]
    fn a_sample_is_made_of_whole_batches() {
        let measured = measure(&scenario(100).batch(7_000), &plan(), &mut Progress::silent());
        assert_eq!(measured[0].ops_per_sample, 14_000);
    }

    #[test]
    fn a_slow_op_is_still_run_once() {
        let measured = measure(&scenario(1_000_000_000), &plan(), &mut Progress::silent());
        assert_eq!(measured[0].ops_per_sample, 1);
    }

    #[test]
    fn what_is_not_time_is_measured_one_batch_at_a_time() {
        let scenario = Scenario::new("test", "one op is imaginary")
            .batch(10)
            .unit(Unit::Bytes)
            .contestant("scales", || |ops| Bytes(64 * ops));
        let measured = measure(&scenario, &plan(), &mut Progress::silent());
        assert_eq!(measured[0].ops_per_sample, 10);
        assert_eq!(measured[0].cost_per_op, Summary { median: 64.0, spread: 0.0 });
    }

    #[test]
    fn contestants_take_turns_and_each_begins_a_round() {
        use std::{cell::RefCell, rc::Rc};
        let order: Rc<RefCell<String>> = Rc::default();
        let enter = |name: char| {
            let order = Rc::clone(&order);
            move || {
                let order = Rc::clone(&order);
                move |_ops| {
                    order.borrow_mut().push(name);
                    Duration::from_millis(1)
                }
            }
        };
        let scenario = Scenario::new("test", "").contestant("a", enter('a')).contestant("b", enter('b'));
        measure(&scenario, &plan(), &mut Progress::silent());
        // Calibration, three rounds, the counting sample.
        assert_eq!(*order.borrow(), "ab abbaab ab".replace(' ', ""));
    }
}
