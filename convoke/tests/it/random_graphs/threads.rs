//! The threads that all graphs share.

use std::sync::LazyLock;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread;

use convoke::executor::PoolExecutor;
use convoke::executor::{Limited, Strand};
use convoke::prelude::*;
use convoke::sender::prelude::*;

use crate::random_graphs::ledger::{Fault, Word};

pub(crate) static THREADS: LazyLock<Threads> = LazyLock::new(|| {
    let two = ThreadPool::new(2).unwrap();
    Threads {
        strand: Strand::new(two.executor()),
        limited: Limited::new(&two.executor(), 1),
        one: ThreadPool::new(1).unwrap(),
        two,
        helper: helper(),
        stopper: helper(),
    }
});

#[derive(Debug)]
pub(crate) struct Threads {
    pub(crate) one: ThreadPool,
    pub(crate) two: ThreadPool,
    pub(crate) strand: Strand<PoolExecutor>,
    pub(crate) limited: Limited<PoolExecutor>,
    /// Completes callbacks from outside all executors.
    pub(crate) helper: Sender<Job>,
    /// Requests stops of whole graphs.
    pub(crate) stopper: Sender<Job>,
}

/// The work of a helper thread.
pub(crate) enum Job {
    Run(Box<dyn FnOnce() + Send>),
    /// Keeps the handle until its work is requested to stop, then drops it.
    UntilStopped(Completion<Word, Fault>),
}

impl Job {
    pub(crate) fn run(f: impl FnOnce() + Send + 'static) -> Self {
        Self::Run(Box::new(f))
    }
}

fn helper() -> Sender<Job> {
    let (sender, jobs) = mpsc::channel();
    thread::Builder::new().name("helper".to_owned()).spawn(move || help(&jobs)).unwrap();
    sender
}

fn help(jobs: &Receiver<Job>) {
    let mut waiting: Vec<Completion<Word, Fault>> = Vec::new();
    loop {
        let job = if waiting.is_empty() {
            let Ok(job) = jobs.recv() else { return };
            Some(job)
        } else {
            match jobs.try_recv() {
                Ok(job) => Some(job),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => return,
            }
        };
        match job {
            Some(Job::Run(f)) => f(),
            Some(Job::UntilStopped(completion)) => waiting.push(completion),
            None => thread::yield_now(),
        }
        waiting.retain(|completion| !completion.stop_requested());
    }
}

/// Spins for some rounds without yielding the processor.
pub(crate) fn spin(rounds: usize) {
    for _ in 0..rounds {
        std::hint::spin_loop();
    }
}
