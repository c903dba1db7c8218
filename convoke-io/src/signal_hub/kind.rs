//! `Signal`: a signal number, with names for the common ones.

use core::fmt;

#[cfg(unix)]
use signal_hook::consts as numbers;

#[cfg(not(unix))]
mod numbers {
    //! The numbers of Linux, so that programs and simulations can name signals on every system. SIGINT and
    //! SIGTERM have these numbers on Windows too.

    pub(super) const SIGINT: i32 = 2;
    pub(super) const SIGTERM: i32 = 15;
    pub(super) const SIGHUP: i32 = 1;
    pub(super) const SIGQUIT: i32 = 3;
    pub(super) const SIGUSR1: i32 = 10;
    pub(super) const SIGUSR2: i32 = 12;
    pub(super) const SIGPIPE: i32 = 13;
    pub(super) const SIGALRM: i32 = 14;
    pub(super) const SIGCHLD: i32 = 17;
    pub(super) const SIGCONT: i32 = 18;
    pub(super) const SIGTSTP: i32 = 20;
    pub(super) const SIGWINCH: i32 = 28;
}

/// A signal of the operating system. Signals that programs commonly handle have a name here; others are made
/// from their [number](Signal::new). All names exist on every system. Subscribing to a signal that the system
/// does not have is an error.
///
/// ```
/// use convoke::signal::Signal;
///
/// assert_eq!(Signal::TERMINATE.to_string(), "SIGTERM");
/// assert_eq!(Signal::new(Signal::INTERRUPT.number()), Signal::INTERRUPT);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signal(i32);

impl Signal {
    /// SIGINT: Ctrl-C.
    pub const INTERRUPT: Self = Self(numbers::SIGINT);
    /// SIGTERM: the program is requested to end.
    pub const TERMINATE: Self = Self(numbers::SIGTERM);
    /// SIGHUP: the terminal was closed. Daemons reload their configuration on it.
    pub const HANGUP: Self = Self(numbers::SIGHUP);
    /// SIGQUIT: Ctrl-\.
    pub const QUIT: Self = Self(numbers::SIGQUIT);
    /// SIGUSR1: defined by the program.
    pub const USER_1: Self = Self(numbers::SIGUSR1);
    /// SIGUSR2: defined by the program.
    pub const USER_2: Self = Self(numbers::SIGUSR2);
    /// SIGCHLD: a child process has stopped or ended.
    pub const CHILD: Self = Self(numbers::SIGCHLD);
    /// SIGALRM: a timer of the process has expired.
    pub const ALARM: Self = Self(numbers::SIGALRM);
    /// SIGPIPE: a write to a pipe without a reader. Rust programs ignore it.
    pub const PIPE: Self = Self(numbers::SIGPIPE);
    /// SIGWINCH: the size of the terminal has changed.
    pub const WINDOW_CHANGE: Self = Self(numbers::SIGWINCH);
    /// SIGTSTP: Ctrl-Z.
    pub const TERMINAL_STOP: Self = Self(numbers::SIGTSTP);
    /// SIGCONT: the process continues after a stop.
    pub const CONTINUE: Self = Self(numbers::SIGCONT);

    /// Creates the signal with this number. Subscribing fails if the system has no such signal.
    pub const fn new(number: i32) -> Self {
        Self(number)
    }

    /// Returns its number on this system.
    pub const fn number(self) -> i32 {
        self.0
    }

    /// Returns true if `#[convoke::main]` stops the program on this signal: SIGINT and SIGTERM.
    pub fn asks_to_stop(self) -> bool {
        self == Self::INTERRUPT || self == Self::TERMINATE
    }

    fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::INTERRUPT => "SIGINT",
            Self::TERMINATE => "SIGTERM",
            Self::HANGUP => "SIGHUP",
            Self::QUIT => "SIGQUIT",
            Self::USER_1 => "SIGUSR1",
            Self::USER_2 => "SIGUSR2",
            Self::CHILD => "SIGCHLD",
            Self::ALARM => "SIGALRM",
            Self::PIPE => "SIGPIPE",
            Self::WINDOW_CHANGE => "SIGWINCH",
            Self::TERMINAL_STOP => "SIGTSTP",
            Self::CONTINUE => "SIGCONT",
            _ => return None,
        })
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "signal {}", self.0),
        }
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
