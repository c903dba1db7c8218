//! `ContextThread`: an I/O context on its own thread. It runs until the runtime ends.

use std::io;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use convoke_io::{IoExecutor, Work};

use super::new_context;

pub(super) struct ContextThread {
    executor: IoExecutor,
    /// Keeps the context running.
    work: Option<Work>,
    thread: Option<JoinHandle<()>>,
}

impl ContextThread {
    pub(super) fn start(number: usize, spin: Option<Duration>) -> io::Result<Self> {
        let (made, ready) = mpsc::channel();
        let thread = thread::Builder::new().name(format!("convoke-io-{number}")).spawn(move || {
            let context = match new_context(spin) {
                Ok(context) => context,
                Err(error) => return drop(made.send(Err(error))),
            };
            if made.send(Ok((context.executor(), context.work()))).is_ok() {
                context.run();
            }
        });
        let thread = thread.map_err(|error| no_thread(number, &error))?;
        let gone = |_| io::Error::other("the thread of an I/O context ended before it began");
        let (executor, work) = ready.recv().map_err(gone)??;
        Ok(Self { executor, work: Some(work), thread: Some(thread) })
    }

    pub(super) fn executor(&self) -> IoExecutor {
        self.executor.clone()
    }
}

#[cold]
fn no_thread(number: usize, error: &io::Error) -> io::Error {
    let message = format!("the system cannot start the thread of I/O context {number}: {error}");
    io::Error::new(error.kind(), message)
}

impl Drop for ContextThread {
    fn drop(&mut self) {
        // Chains that were launched here and are still running are not awaited: the code that holds their
        // `Launched` does that, as for chains of the first context.
        self.executor.stop();
        drop(self.work.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            eprintln!("convoke: the thread of an I/O context has panicked");
        }
    }
}
