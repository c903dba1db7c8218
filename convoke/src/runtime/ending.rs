//! What the end of a program means to whoever started it: its exit status.

use core::fmt::Debug;
use std::process::{ExitCode, Termination};

use convoke_core::StopReason;

/// The exit status of a program that was asked to stop by a signal and did not end in time, or was asked a second time: the same
/// as that of `timeout(1)`.
pub const ENDED_HARD: u8 = 124;

/// How a program has ended.
#[derive(Debug)]
#[must_use = "it is the exit status"]
pub enum Ending<T> {
    /// It returned this.
    Value(T),
    /// It was stopped, after all its clean-up, for this reason.
    Stopped(Option<StopReason>),
}

impl<T: Termination> Termination for Ending<T> {
    /// What the value says; if it was stopped by a signal, 128 and its number, as shells do; by anything else, 1.
    fn report(self) -> ExitCode {
        match self {
            Self::Value(value) => value.report(),
            Self::Stopped(reason) => status_of_stop(reason).into(),
        }
    }
}

/// The exit status of a program that was stopped: for a signal, 128 and its number, as shells do; else 1, and it says why.
pub(super) fn status_of_stop(reason: Option<StopReason>) -> u8 {
    match reason {
        Some(StopReason::Signal(number)) => u8::try_from(128 + number).unwrap_or(u8::MAX),
        Some(reason) => {
            eprintln!("the program was stopped: {reason}");
            1
        }
        None => {
            eprintln!(
                "the program has stopped itself: it has awaited something that ended by the stopped door, such as a child \
                 that it had asked to stop; `catch_stopped` makes that a value"
            );
            1
        }
    }
}
