//! Signals on Unix: a thread reads the pipe that the signal handler writes to.

use std::io;
use std::thread::{self, JoinHandle};

use convoke_exec::raw::start_thread;
use signal_hook::consts::FORBIDDEN;
use signal_hook::iterator::{Handle, Signals};

/// All signal numbers are below this, on every system.
const NUMBERS: i32 = 128;

pub(super) struct SystemSignals {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl SystemSignals {
    /// Starts a thread that calls `deliver` for each signal that is listened for.
    pub(super) fn new(deliver: impl Fn(i32) + Send + 'static) -> io::Result<Self> {
        let mut signals = Signals::new(core::iter::empty::<i32>())?;
        let handle = signals.handle();
        let hear = move || signals.forever().for_each(deliver);
        let thread = start_thread("convoke-signals".into(), None, Box::new(hear))?;
        Ok(Self { handle, thread: Some(thread) })
    }

    pub(super) fn can_handle(number: i32) -> bool {
        (1..NUMBERS).contains(&number) && !FORBIDDEN.contains(&number)
    }

    pub(super) fn listen_for(&self, number: i32) -> io::Result<()> {
        self.handle.add_signal(number)
    }
}

impl Drop for SystemSignals {
    fn drop(&mut self) {
        self.handle.close();
        // The thread itself may drop the last reference, when it wakes the last subscriber. It ends by itself
        // then.
        let other = self.thread.take().filter(|thread| thread.thread().id() != thread::current().id());
        if let Some(thread) = other {
            _ = thread.join();
        }
    }
}

pub(super) fn raise(number: i32) -> io::Result<()> {
    signal_hook::low_level::raise(number)
}
