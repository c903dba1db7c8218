//! `Ending`: how a program has ended, its exit status, and the line on stderr for one that was stopped.

use core::fmt;
use std::process::{ExitCode, Termination};

use convoke_core::StopReason;
use convoke_net::signal::Signal;

/// The exit status of a program that was asked to stop by a signal and did not end in time, or was signalled
/// again. It is `EX_SOFTWARE` of `sysexits.h`: unlike 124 it is not that of `timeout(1)`, and unlike 128 and
/// more it cannot be taken for a stop after which everything was cleaned up.
pub const ENDED_HARD: u8 = 70;

/// How a program has ended.
#[must_use = "it is the exit status"]
pub(super) enum Ending<T> {
    /// It returned this.
    Value(T),
    /// It was stopped, and all its clean-up has run.
    Stopped(ProgramStopped),
}

/// Why a program was stopped, and where it waited when that began.
#[derive(Debug)]
pub(super) struct ProgramStopped {
    pub(super) reason: Option<StopReason>,
    pub(super) waited: Option<String>,
}

impl ProgramStopped {
    /// Prints the reason, and returns the exit status: 128 plus the number of the signal, as shells do; 1 for
    /// any other reason.
    pub(super) fn report(&self) -> u8 {
        eprintln!("convoke: {self}");
        match self.reason {
            Some(StopReason::Signal(number)) => u8::try_from(128 + number).unwrap_or(u8::MAX),
            _ => 1,
        }
    }
}

impl fmt::Display for ProgramStopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Some(StopReason::Signal(number)) => {
                write!(f, "the program was stopped by {}", Signal::new(number))?;
            }
            Some(reason) => write!(f, "the program was stopped: {reason}")?,
            None => f.write_str(
                "the program stopped itself: it awaited something that ended as stopped, such as a child that it had \
                 asked to stop; `catch_stopped` makes a value of that",
            )?,
        }
        match &self.waited {
            Some(waited) => write!(f, "; {waited}"),
            None => Ok(()),
        }
    }
}

impl<T: Termination> Ending<T> {
    /// Returns the exit status, and prints the reason if it was stopped.
    pub(super) fn exit_code(self) -> ExitCode {
        match self {
            Self::Value(value) => value.report(),
            Self::Stopped(stopped) => stopped.report().into(),
        }
    }
}
