//! Shared parts of the tests with random traffic: rounds that follow from a seed, which is printed when one
//! fails or hangs; calls that are cut short; bytes that show their position.
//!
//! `CONVOKE_ROUNDS=n` sets the number of rounds. `CONVOKE_SEED=n` runs only that round, `CONVOKE_ROUNDS`
//! times.

mod cut_short;
mod numbered;

pub(crate) use cut_short::{polled_once, stopped_soon};
pub(crate) use numbered::numbered;

use std::io::{self, Write};
use std::sync::mpsc::{self, RecvError, RecvTimeoutError};
use std::time::Duration;
use std::{env, process, thread};

use convoke::inspect::tree;

/// The time limit of a round.
const PATIENCE: Duration = Duration::from_secs(60);

/// The rounds of a test.
pub(crate) struct Rounds {
    test: &'static str,
    usual: u64,
    seed: Option<u64>,
    count: Option<u64>,
}

impl Rounds {
    /// Creates the rounds of a test; `usual` is their default number.
    pub(crate) fn of(test: &'static str, usual: u64) -> Self {
        let number = |name| env::var(name).ok().map(|text| text.parse().expect("a number"));
        Self { test, usual, seed: number("CONVOKE_SEED"), count: number("CONVOKE_ROUNDS") }
    }

    /// Runs all rounds. Returns true if no environment variable has changed them.
    pub(crate) fn run(&self, mut run: impl FnMut(u64)) -> bool {
        let running = watch(self.test);
        for round in 0..self.count.unwrap_or(if self.seed.is_some() { 1 } else { self.usual }) {
            let seed = self.seed.unwrap_or(round);
            running.send(seed).unwrap();
            let _named = PrintSeedOnPanic { test: self.test, seed };
            run(seed);
        }
        self.seed.is_none() && self.count.is_none()
    }
}

/// A guard that prints the seed if the test fails.
struct PrintSeedOnPanic {
    test: &'static str,
    seed: u64,
}

impl Drop for PrintSeedOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", replay(self.test, self.seed));
        }
    }
}

fn replay(test: &str, seed: u64) -> String {
    format!(
        "to replay: CONVOKE_SEED={seed} CONVOKE_ROUNDS=1000 cargo test -p convoke --features full --test {test}"
    )
}

/// Starts a thread that aborts the process if a round takes too long. The returned channel tells it which
/// round starts.
fn watch(test: &'static str) -> mpsc::Sender<u64> {
    let (running, rounds) = mpsc::channel();
    thread::spawn(move || {
        let mut now = rounds.recv();
        while let Ok(seed) = now {
            now = match rounds.recv_timeout(PATIENCE) {
                Err(RecvTimeoutError::Timeout) => give_up(test, seed),
                next => next.map_err(|_| RecvError),
            };
        }
    });
    running
}

fn give_up(test: &str, seed: u64) -> ! {
    // Bypasses the output capture of the test harness, which an abort would lose.
    let text = format!("a round does not end; {}\n{}\n", replay(test, seed), tree());
    let _ = io::stderr().write_all(text.as_bytes());
    process::abort()
}
