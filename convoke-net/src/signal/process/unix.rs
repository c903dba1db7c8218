//! Signals on Unix: a thread that reads the pipe which their handler writes to.

use std::io;
use std::thread::{self, JoinHandle};

use signal_hook::consts::FORBIDDEN;
use signal_hook::iterator::{Handle, Signals};

/// Numbers are below this, on all systems.
const NUMBERS: i32 = 128;

pub(super) struct SystemSignals {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl SystemSignals {
    /// Calls `tell` on a thread, for each that it listens for.
    pub(super) fn new(tell: impl Fn(i32) + Send + 'static) -> io::Result<Self> {
        let mut signals = Signals::new(core::iter::empty::<i32>())?;
        let handle = signals.handle();
        let thread = thread::Builder::new().name("convoke-signals".into());
        let thread = thread.spawn(move || signals.forever().for_each(tell))?;
        Ok(Self { handle, thread: Some(thread) })
    }

    pub(super) fn can_hear(number: i32) -> bool {
        (1..NUMBERS).contains(&number) && !FORBIDDEN.contains(&number)
    }

    pub(super) fn listen_for(&self, number: i32) -> io::Result<()> {
        self.handle.add_signal(number)
    }
}

impl Drop for SystemSignals {
    fn drop(&mut self) {
        self.handle.close();
        // It may be the thread itself that has told the last one who wanted to hear: that ends by itself.
        let other = self.thread.take().filter(|thread| thread.thread().id() != thread::current().id());
        if let Some(thread) = other {
            _ = thread.join();
        }
    }
}

pub(super) fn raise(number: i32) -> io::Result<()> {
    signal_hook::low_level::raise(number)
}
