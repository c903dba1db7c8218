//! What the tests of random traffic have in common: rounds, each of which follows from its seed, which is named when one fails or
//! does not end; calls that are cut short; bytes that show where they belong.
//!
//! `CONVOKE_ROUNDS=n` sets the number of rounds. `CONVOKE_SEED=n` runs that round only, `CONVOKE_ROUNDS` times.

mod cut_short;
mod numbered;

pub(crate) use cut_short::{polled_once, stopped_soon};
pub(crate) use numbered::numbered;

use std::io::{self, Write};
use std::sync::mpsc::{self, RecvError, RecvTimeoutError};
use std::time::Duration;
use std::{env, process, thread};

use convoke::inspect::tree;

/// How long a round may take before the test is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// The rounds of a test.
pub(crate) struct Rounds {
    test: &'static str,
    usual: u64,
    seed: Option<u64>,
    count: Option<u64>,
}

impl Rounds {
    /// Of this test, so many unless it is said otherwise.
    pub(crate) fn of(test: &'static str, usual: u64) -> Self {
        let number = |name| env::var(name).ok().map(|text| text.parse().expect("a number"));
        Self { test, usual, seed: number("CONVOKE_SEED"), count: number("CONVOKE_ROUNDS") }
    }

    /// Plays each, by its seed. True if they were as many and as various as usual.
    pub(crate) fn play(&self, mut play: impl FnMut(u64)) -> bool {
        let running = watch(self.test);
        for round in 0..self.count.unwrap_or(if self.seed.is_some() { 1 } else { self.usual }) {
            let seed = self.seed.unwrap_or(round);
            running.send(seed).unwrap();
            let _named = NamesSeed { test: self.test, seed };
            play(seed);
        }
        self.seed.is_none() && self.count.is_none()
    }
}

/// Says which seed it was, if the test fails.
struct NamesSeed {
    test: &'static str,
    seed: u64,
}

impl Drop for NamesSeed {
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

/// Looks after the rounds, each of which is told when it begins, until the test has ended.
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
    // Past the capture of the test harness, which an abort would lose.
    let text = format!("a round does not end; {}\n{}\n", replay(test, seed), tree());
    let _ = io::stderr().write_all(text.as_bytes());
    process::abort()
}
