//! Fan-out with first error: pages are fetched side by side; the first that fails stops the others, and every connection is
//! closed before the error is returned.
//!
//! ```text
//! cargo run --release --example fan_out
//! ```

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use convoke::prelude::*;

fn main() {
    for broken in [None, Some(7)] {
        let journal = Journal::default();
        let fetched = block_on(fetch_all(12, broken, journal.clone())).unwrap();
        print(&journal, &fetched);
    }
}

/// All pages, in order, or the first error.
pub async fn fetch_all(pages: u32, broken: Option<u32>, journal: Journal) -> Result<Vec<String>, NoSuchPage> {
    scope(async |s| {
        let fetched: Vec<_> = (1..=pages).map(|_| Arc::new(Mutex::new(String::new()))).collect();
        for (page, text) in (1..=pages).zip(&fetched) {
            let (journal, text) = (journal.clone(), text.clone());
            s.named(format!("page {page}")).spawn(async move {
                let got = fetch(page, broken, journal).await?;
                *text.lock().unwrap() = got;
                Ok(())
            });
        }
        // The scope waits for its children; only then is there something to return.
        Ok(fetched)
    })
    .await
    .map(|texts| texts.iter().map(|text| text.lock().unwrap().clone()).collect())
}

/// One page over a connection of its own, which is closed however this ends.
async fn fetch(page: u32, broken: Option<u32>, journal: Journal) -> Result<String, NoSuchPage> {
    using(Connection::open(page, journal), async |_connection| {
        sleep(Duration::from_millis(u64::from(page * 7 % 12) * 4 + 4)).await;
        if broken == Some(page) { Err(NoSuchPage(page)) } else { Ok(format!("text of page {page}")) }
    })
    .await
}

/// A page that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchPage(pub u32);

impl fmt::Display for NoSuchPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no page {}", self.0)
    }
}

impl std::error::Error for NoSuchPage {}

struct Connection {
    page: u32,
    opened: Instant,
    journal: Journal,
}

impl Connection {
    fn open(page: u32, journal: Journal) -> Self {
        journal.0.lock().unwrap().opened += 1;
        Self { page, opened: Instant::now(), journal }
    }
}

impl AsyncClose for Connection {
    type Error = Never;

    /// Says goodbye, which takes a moment; a stop does not keep it from that.
    async fn close(self, exit: Exit) -> Result<(), Never> {
        checkpoint().await;
        let lasted = self.opened.elapsed();
        self.journal.0.lock().unwrap().closed.push(Closed {
            page: self.page,
            lasted,
            exit: exit.to_string(),
        });
        Ok(())
    }
}

/// Log of the connections.
#[derive(Clone, Debug, Default)]
pub struct Journal(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    opened: usize,
    closed: Vec<Closed>,
}

#[derive(Debug)]
struct Closed {
    page: u32,
    lasted: Duration,
    exit: String,
}

impl Journal {
    /// How many connections were opened and not closed.
    pub fn left_open(&self) -> usize {
        let entries = self.0.lock().unwrap();
        entries.opened - entries.closed.len()
    }
}

fn print(journal: &Journal, fetched: &Result<Vec<String>, NoSuchPage>) {
    match fetched {
        Ok(pages) => println!("fetched {} pages", pages.len()),
        Err(error) => println!("failed: {error}; the other pages were stopped"),
    }
    let mut entries = journal.0.lock().unwrap();
    entries.closed.sort_by_key(|closed| closed.page);
    for Closed { page, lasted, exit } in &entries.closed {
        let bar = "━".repeat(lasted.as_millis() as usize / 2 + 1);
        println!("  page {page:>2} {bar:<26} closed: the fetch {exit}");
    }
    println!("  {} connections opened, {} closed\n", entries.opened, entries.closed.len());
}
