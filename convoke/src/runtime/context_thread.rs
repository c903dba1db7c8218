//! An I/O context on a thread of its own, which runs until the runtime ends.

use std::io;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use convoke_io::{IoExecutor, Work};

use super::context_spinning;

pub(super) struct ContextThread {
    executor: IoExecutor,
    /// As long as it is there, the context runs.
    work: Option<Work>,
    thread: Option<JoinHandle<()>>,
}

impl ContextThread {
    pub(super) fn start(number: usize, spin: Option<Duration>) -> io::Result<Self> {
        let (made, ready) = mpsc::channel();
        let thread = thread::Builder::new().name(format!("convoke-io-{number}")).spawn(move || {
            let context = match context_spinning(spin) {
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
    io::Error::new(
        error.kind(),
        format!("the system does not start the thread of I/O context {number}: {error}"),
    )
}

impl Drop for ContextThread {
    fn drop(&mut self) {
        // Who has launched a chain there, and has not waited for it, does so later: it ends as those of the first context do.
        self.executor.stop();
        drop(self.work.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            eprintln!("convoke: the thread of an I/O context has panicked");
        }
    }
}
