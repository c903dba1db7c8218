//! A job that is stopped by its deadline: its clean-up stores how far it got, and the next run goes on from there. No record is done
//! twice, and none is skipped.
//!
//! ```text
//! cargo run --release --example deadline_job
//! ```

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke::prelude::*;

const RECORDS: usize = 40;
const TURN: Duration = Duration::from_millis(30);

fn main() {
    let logbook = Logbook::default();
    for turn in 1.. {
        let report = block_on(one_turn(RECORDS, TURN, logbook.clone())).unwrap();
        println!("turn {turn}: {report}");
        if report.is_finished() {
            break;
        }
    }
}

/// Works on the records until the time is up, beginning where the logbook says. Returns how far it got.
pub async fn one_turn(records: usize, time: Duration, logbook: Logbook) -> Report {
    let began_at = logbook.next_record();
    let in_time = timeout(time, job(records, logbook.clone())).await.is_ok();
    Report { began_at, reached: logbook.next_record(), records, in_time }
}

/// Works on all records that are left. However it ends, the logbook has how far it got.
pub async fn job(records: usize, logbook: Logbook) {
    let reached = AtomicUsize::new(logbook.next_record());
    let write_down = async |_: Exit| logbook.write(reached.load(Ordering::Relaxed)).await;
    ensure(write_down, async {
        for record in reached.load(Ordering::Relaxed)..records {
            work_on(record, &logbook).await;
            reached.store(record + 1, Ordering::Relaxed);
        }
    })
    .await;
}

/// Prepares one record, which can be stopped, and does it, which is one piece.
async fn work_on(record: usize, logbook: &Logbook) {
    sleep(Duration::from_millis(2)).await;
    logbook.0.lock().unwrap().done.push(record);
}

/// Report of one run.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    began_at: usize,
    reached: usize,
    records: usize,
    in_time: bool,
}

impl Report {
    /// Returns true if all records are done.
    pub fn is_finished(&self) -> bool {
        self.reached == self.records
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { began_at, reached, records, in_time } = *self;
        let bar = format!("{}{}", "━".repeat(reached), "╌".repeat(records - reached));
        let how = if in_time { "finished" } else { "the time was up" };
        write!(f, "{bar} records {began_at} to {reached} of {records}: {how}")
    }
}

/// Progress that is stored between runs. A write takes a moment.
#[derive(Clone, Debug, Default)]
pub struct Logbook(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    next_record: usize,
    done: Vec<usize>,
}

impl Logbook {
    /// Returns the record to go on with.
    pub fn next_record(&self) -> usize {
        self.0.lock().unwrap().next_record
    }

    /// Returns the records that were done, in order.
    pub fn done(&self) -> Vec<usize> {
        self.0.lock().unwrap().done.clone()
    }

    async fn write(&self, next_record: usize) {
        sleep(Duration::from_millis(1)).await;
        self.0.lock().unwrap().next_record = next_record;
    }
}
