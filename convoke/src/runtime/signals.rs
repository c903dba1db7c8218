//! SIGINT and SIGTERM: the first asks the program to stop, a second one or the end of the grace period ends it hard.

use core::time::Duration;
use std::process;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};

use convoke_core::{StopReason, StopSource};
use convoke_exec::tree;

use super::ENDED_HARD;

/// As long as this is there, signals are heard.
pub(super) struct Signals {
    handler: Option<platform::Handler>,
    supervisor: Option<JoinHandle<()>>,
}

impl Signals {
    /// Hears signals from now on. If the system will not have that, it says so and the program goes on without.
    pub(super) fn watch(source: StopSource, grace: Duration) -> Self {
        let (came, signals) = mpsc::channel();
        let handler = match platform::Handler::new(came) {
            Ok(handler) => handler,
            Err(error) => {
                eprintln!("convoke: signals will not be heard: {error}");
                return Self { handler: None, supervisor: None };
            }
        };
        let thread = thread::Builder::new().name("convoke-signals".into());
        let supervisor = thread.spawn(move || supervise(&signals, &source, grace)).ok();
        Self { handler: Some(handler), supervisor }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Its end of the channel goes, and the supervisor with it.
        drop(self.handler.take());
        if let Some(supervisor) = self.supervisor.take() {
            _ = supervisor.join();
        }
    }
}

fn supervise(signals: &Receiver<i32>, source: &StopSource, grace: Duration) {
    let Ok(first) = signals.recv() else { return };
    source.request_stop(StopReason::Signal(first));
    match signals.recv_timeout(grace) {
        Ok(second) => end_hard(&format!("a second signal ({second}) came before all had ended")),
        Err(RecvTimeoutError::Timeout) => {
            end_hard(&format!("not all had ended {} seconds after signal {first}", grace.as_secs()))
        }
        Err(RecvTimeoutError::Disconnected) => {}
    }
}

fn end_hard(why: &str) -> ! {
    eprintln!("convoke: ended hard: {why}. Still running:\n{}", tree());
    process::exit(i32::from(ENDED_HARD))
}

#[cfg(unix)]
mod platform {
    //! A thread that waits for signals, and passes them on.

    use std::io;
    use std::sync::mpsc::Sender;
    use std::thread::{self, JoinHandle};

    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::{Handle, Signals};

    pub(super) struct Handler {
        handle: Handle,
        thread: Option<JoinHandle<()>>,
    }

    impl Handler {
        pub(super) fn new(came: Sender<i32>) -> io::Result<Self> {
            let mut signals = Signals::new([SIGINT, SIGTERM])?;
            let handle = signals.handle();
            let thread = thread::Builder::new().name("convoke-signals-in".into()).spawn(move || {
                for signal in signals.forever() {
                    _ = came.send(signal);
                }
            })?;
            Ok(Self { handle, thread: Some(thread) })
        }
    }

    impl Drop for Handler {
        fn drop(&mut self) {
            self.handle.close();
            if let Some(thread) = self.thread.take() {
                _ = thread.join();
            }
        }
    }
}

#[cfg(not(unix))]
mod platform {
    //! No signals here: the system ends the program by itself.

    use std::io;
    use std::sync::mpsc::Sender;

    pub(super) struct Handler(#[expect(dead_code, reason = "keeps the channel open")] Sender<i32>);

    impl Handler {
        pub(super) fn new(came: Sender<i32>) -> io::Result<Self> {
            Ok(Self(came))
        }
    }
}
