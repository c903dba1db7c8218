//! Which signal: its number, by the names of its purpose.

use core::fmt;

#[cfg(unix)]
use signal_hook::consts as numbers;

#[cfg(not(unix))]
mod numbers {
    //! The numbers that they have on Linux: for programs that name them, and for simulations. The first two are those of
    //! Windows, too.

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

/// A signal of the system's. Those that have a name here are the ones that programs listen for; others have their
/// [number](Signal::new). All can be named everywhere; to want to hear of one that the system does not have is an error.
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
    /// SIGTERM: the program is to end.
    pub const TERMINATE: Self = Self(numbers::SIGTERM);
    /// SIGHUP: the terminal is gone; to a program that has none: read your configuration again.
    pub const HANGUP: Self = Self(numbers::SIGHUP);
    /// SIGQUIT: Ctrl-\.
    pub const QUIT: Self = Self(numbers::SIGQUIT);
    /// SIGUSR1: whatever the program says.
    pub const USER_1: Self = Self(numbers::SIGUSR1);
    /// SIGUSR2: whatever the program says.
    pub const USER_2: Self = Self(numbers::SIGUSR2);
    /// SIGCHLD: a child process has changed.
    pub const CHILD: Self = Self(numbers::SIGCHLD);
    /// SIGALRM: a timer of the process.
    pub const ALARM: Self = Self(numbers::SIGALRM);
    /// SIGPIPE: somebody has written to a pipe that nobody reads. Rust's programs ignore it.
    pub const PIPE: Self = Self(numbers::SIGPIPE);
    /// SIGWINCH: the terminal has another size.
    pub const WINDOW_CHANGE: Self = Self(numbers::SIGWINCH);
    /// SIGTSTP: Ctrl-Z.
    pub const TERMINAL_STOP: Self = Self(numbers::SIGTSTP);
    /// SIGCONT: it goes on after that.
    pub const CONTINUE: Self = Self(numbers::SIGCONT);

    /// The signal of this number. Whether there is one is found out when somebody wants to hear of it.
    pub const fn new(number: i32) -> Self {
        Self(number)
    }

    /// Its number on this system.
    pub const fn number(self) -> i32 {
        self.0
    }

    /// Whether `#[convoke::main]` asks the program to stop when it comes: SIGINT and SIGTERM.
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
