//! `ContextThread`: an I/O context on its own thread. It runs until the runtime ends.

use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use convoke_core::FrameAllocator;
use convoke_core::raw::sync::thread::{self, Thread};
use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::raw::{DropOutOfLine, LastUse};
use convoke_exec::raw::start_thread;
use convoke_io::{IoExecutor, Work};

use super::new_context;

pub(super) struct ContextThread {
    executor: IoExecutor,
    /// Keeps the context running.
    work: Option<Work>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl ContextThread {
    pub(super) fn start(
        number: usize,
        spin: Option<Duration>,
        allocator: FrameAllocator,
    ) -> io::Result<Self> {
        let made = Arc::new(Mutex::new(None));
        let announcement = Announcement { made: made.clone(), waiter: thread::current() };
        let run = move || match new_context(spin, allocator) {
            Ok(context) => {
                announcement.make(Ok((context.executor(), context.work())));
                context.run();
            }
            Err(error) => announcement.make(Err(error)),
        };
        let thread = start_thread(format!("convoke-io-{number}"), None, Box::new(run));
        let thread = thread.map_err(|error| no_thread(number, &error))?;
        let (executor, work) = loop {
            if let Some(made) = lock(&made).take() {
                break made?;
            }
            thread::park();
        };
        Ok(Self { executor, work: Some(work), thread: Some(thread) })
    }

    pub(super) fn executor(&self) -> IoExecutor {
        self.executor.clone()
    }
}

/// The context of a thread, or an error: made once.
type Made = Option<io::Result<(IoExecutor, Work)>>;

/// Tells the thread that starts a context what became of it. A channel would be ten times as much code.
struct Announcement {
    made: Arc<Mutex<Made>>,
    waiter: Thread,
}

impl Announcement {
    fn make(self, made: io::Result<(IoExecutor, Work)>) {
        *lock(&self.made) = Some(made);
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        let gone = || Err(io::Error::other("the thread of an I/O context ended before it began"));
        lock(&self.made).get_or_insert_with(gone);
        self.waiter.unpark();
    }
}

fn lock(made: &Mutex<Made>) -> MutexGuard<'_, Made> {
    made.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cold]
fn no_thread(number: usize, error: &io::Error) -> io::Error {
    let message = format!("the system cannot start the thread of I/O context {number}: {error}");
    io::Error::new(error.kind(), message)
}

impl DropOutOfLine for ContextThread {
    #[inline(never)]
    fn drop_out_of_line(thread: LastUse<'_, Self>) {
        thread.drop_here();
    }
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
