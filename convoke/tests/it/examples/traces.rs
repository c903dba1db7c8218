//! Programs that write results, which are checked when all runs of an exploration have ended.

use std::cell::RefCell;

use convoke::testing::Probe;

/// Returns a program that writes results into a `T`, a new one for each run. `kept` collects them in the
/// order of the runs.
pub(crate) fn traced<T: Clone, P>(
    kept: &RefCell<Vec<T>>,
    traces: impl Fn() -> T,
    program: impl Fn(T) -> P,
    only_stopped: bool,
) -> impl Fn(&Probe) -> P {
    move |probe| {
        if only_stopped {
            probe.ends_only_when_stopped();
        }
        let trace = traces();
        kept.borrow_mut().push(trace.clone());
        program(trace)
    }
}
