//! Workers that fail are restarted with backoff, up to a limit, and no job is lost: a job is back on the desk before its worker is
//! restarted, also if the worker panicked or the whole shift is stopped.
//!
//! ```text
//! cargo run --release --example supervised_workers
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use convoke::prelude::*;
use convoke::retry::Backoff;
use convoke::scope::policy::{ChildFailure, FailureKind, ReportFailure, Supervise};
use convoke::scope::scope_with;

/// How a worker is started again: after 5 ms, 10 ms, 20 ms, and not a fourth time.
const RESTARTS: Backoff =
    Backoff::exponential(Duration::from_millis(5)).at_most(Duration::from_millis(20)).up_to(3);

/// Workers, with the time that a job takes each of them and the trouble that they have.
pub const STAFF: [Worker; 4] = [
    Worker { name: "ann", pace: 9, trouble: Trouble::None },
    Worker { name: "bob", pace: 6, trouble: Trouble::Clumsy },
    Worker { name: "cid", pace: 7, trouble: Trouble::Jams },
    Worker { name: "dot", pace: 8, trouble: Trouble::None },
];

fn main() {
    // The report has the panic below; the standard hook would print it again.
    std::panic::set_hook(Box::new(|_| ()));
    let desk = Desk::new(48);
    let report = block_on(shift(desk.clone(), &STAFF)).unwrap();
    print(&desk, &report);
}

/// Runs all workers until the desk is empty. Returns the reports of those that reached the end, and the failures of the others.
pub async fn shift(desk: Desk, staff: &'static [Worker]) -> ReportFailure<Done, Jammed> {
    scope_with(Supervise, async |s| {
        for worker in staff {
            let (told, desk) = (desk.clone(), desk.clone());
            s.named(worker.name)
                .restart(RESTARTS)
                .report(move |failure| told.note(worker.name, format!("{}; starts again", what(failure))))
                .spawn(move || work(worker, desk.clone()));
        }
    })
    .await
}

/// Runs one worker until there is nothing left to do.
async fn work(worker: &'static Worker, desk: Desk) -> Result<Done, Jammed> {
    let mut jobs = 0;
    while let Some(job) = desk.take() {
        // Whichever way this is left, the desk has the job, done or not.
        using(Taken { job, desk: desk.clone(), by: worker }, async |taken| {
            sleep(Duration::from_millis(worker.pace)).await;
            worker.trouble.with(taken.job, jobs + 1, desk.restarts(worker.name))
        })
        .await?;
        jobs += 1;
    }
    desk.note(worker.name, format!("leaves, {jobs} done since the last start"));
    Ok(Done { name: worker.name, jobs })
}

/// Worker of the staff.
#[derive(Debug)]
pub struct Worker {
    name: &'static str,
    /// Milliseconds that a job takes.
    pace: u64,
    trouble: Trouble,
}

/// Trouble that a worker has.
#[derive(Debug)]
enum Trouble {
    None,
    /// The third job in a row is too much, until it has happened twice.
    Clumsy,
    /// The machine never works.
    Jams,
}

impl Trouble {
    fn with(&self, job: u32, in_a_row: u32, restarts: usize) -> Result<(), Jammed> {
        match self {
            Self::Clumsy if in_a_row == 3 && restarts < 2 => panic!("job {job} slipped"),
            Self::Jams => Err(Jammed { job }),
            Self::None | Self::Clumsy => Ok(()),
        }
    }
}

/// Report of a worker that reached the end of the shift.
#[derive(Debug)]
pub struct Done {
    /// Name of the worker.
    pub name: &'static str,
    /// Number of jobs since the last start.
    pub jobs: u32,
}

/// The machine stopped in the middle of a job.
#[derive(Debug)]
pub struct Jammed {
    job: u32,
}

impl fmt::Display for Jammed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the machine jams at job {}", self.job)
    }
}

impl std::error::Error for Jammed {}

/// Job that a worker has taken. It goes back to the desk if it was not done.
struct Taken {
    job: u32,
    desk: Desk,
    by: &'static Worker,
}

impl AsyncClose for Taken {
    type Error = Never;

    async fn close(self, exit: Exit) -> Result<(), Never> {
        let mut desk = self.desk.lock();
        match exit {
            Exit::Value => desk.done.push((self.by.name, self.job)),
            _ => desk.to_do.push_front(self.job),
        }
        Ok(())
    }
}

/// Open jobs, finished jobs and the log.
#[derive(Clone, Debug)]
pub struct Desk(Arc<Mutex<Papers>>);

#[derive(Debug)]
struct Papers {
    to_do: VecDeque<u32>,
    done: Vec<(&'static str, u32)>,
    journal: Vec<(Duration, &'static str, String)>,
    opened: Instant,
}

impl Desk {
    /// Creates a desk with `jobs` jobs on it.
    pub fn new(jobs: u32) -> Self {
        let papers = Papers {
            to_do: (1..=jobs).collect(),
            done: Vec::new(),
            journal: Vec::new(),
            opened: Instant::now(),
        };
        Self(Arc::new(Mutex::new(papers)))
    }

    fn lock(&self) -> MutexGuard<'_, Papers> {
        self.0.lock().unwrap()
    }

    fn take(&self) -> Option<u32> {
        self.lock().to_do.pop_front()
    }

    fn note(&self, who: &'static str, what: String) {
        let mut papers = self.lock();
        let at = papers.opened.elapsed();
        papers.journal.push((at, who, what));
    }

    /// Returns the numbers of the jobs that are done, and of those that are not, each sorted.
    pub fn jobs(&self) -> (Vec<u32>, Vec<u32>) {
        let papers = self.lock();
        let mut done: Vec<_> = papers.done.iter().map(|(_, job)| *job).collect();
        let mut left: Vec<_> = papers.to_do.iter().copied().collect();
        done.sort_unstable();
        left.sort_unstable();
        (done, left)
    }

    /// Returns the number of restarts of this worker.
    pub fn restarts(&self, name: &str) -> usize {
        self.lock().journal.iter().filter(|(_, who, what)| *who == name && what.ends_with("again")).count()
    }
}

fn what(failure: &ChildFailure<Jammed>) -> String {
    match failure.kind() {
        FailureKind::Error(error) => error.to_string(),
        FailureKind::Panicked(panic) => format!("panics: {}", panic.message()),
    }
}

fn print(desk: &Desk, report: &ReportFailure<Done, Jammed>) {
    println!("   time  who  what");
    for (at, who, what) in &desk.lock().journal {
        println!("{:>4} ms  {who:<4} {what}", at.as_millis());
    }
    println!("\nworker   jobs  restarts  at the end");
    for worker in &STAFF {
        let jobs = desk.lock().done.iter().filter(|(who, _)| *who == worker.name).count();
        let failure = report.failures.iter().find(|failure| failure.name() == Some(worker.name));
        let end = match failure {
            Some(failure) => format!("given up: {}", what(failure)),
            None => "left".to_owned(),
        };
        println!("{:<7} {jobs:>5}  {:>8}  {end}", worker.name, desk.restarts(worker.name));
    }
    let (done, left) = desk.jobs();
    println!("\n{} jobs done, each once; {} left on the desk", done.len(), left.len());
}
