//! A polite crawler: a bounded number of requests at a time, a pause between any two, and another attempt with backoff if a page is
//! busy. The site is in memory; progress is printed while the crawl runs.
//!
//! ```text
//! cargo run --release --example crawler
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use convoke::prelude::*;
use convoke::retry::{Backoff, retry_if};
use convoke::scope::BodyOutput;
use convoke::scope::Bound;
use convoke::sync;

/// Schedule of the attempts to fetch a busy page.
const AGAIN: Backoff = Backoff::exponential(Duration::from_millis(20)).up_to(2);

fn main() {
    let site = Site::sample(60);
    let mut display = Display::new();
    let limits = Limits { at_a_time: 6, interval: Duration::from_millis(8) };
    let report = block_on(crawl(site.clone(), limits, |progress| display.draw(progress))).unwrap();
    display.end();
    print(&site, &report);
}

/// Limits of the load on a site.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of requests at a time.
    pub at_a_time: usize,
    /// Minimum time between two requests.
    pub interval: Duration,
}

/// Fetches the first page, all that it leads to, and so on; each page once. `progress` is told of every step.
pub async fn crawl(site: Site, limits: Limits, mut progress: impl FnMut(&Progress) + Send) -> Report {
    let bound = Bound::new(limits.at_a_time);
    let pace = Arc::new(Pace::new(limits.interval));
    scope(async |s| {
        let mut fetched = s.results();
        let mut report = Report::default();
        let mut seen = BTreeSet::from([Site::FIRST.to_owned()]);
        let mut frontier = VecDeque::from([Site::FIRST.to_owned()]);
        loop {
            // Only as many are started as there is room for: the rest are strings, not tasks.
            while bound.free() > 0
                && let Some(path) = frontier.pop_front()
            {
                let room = bound.take(1).await;
                let (site, pace) = (site.clone(), pace.clone());
                fetched.spawn(async move {
                    let page = fetch_politely(&site, &pace, &path).await;
                    drop(room);
                    (path, page)
                });
            }
            let under_way = limits.at_a_time - bound.free();
            progress(&Progress {
                known: seen.len(),
                fetched: report.pages.len(),
                broken: report.broken.len(),
                under_way,
            });
            let Some((path, page)) = fetched.next().await else { break };
            match page {
                Ok(page) => {
                    for link in page.links {
                        if seen.insert(link.clone()) {
                            frontier.push_back(link);
                        }
                    }
                    report.pages.insert(path, page.bytes);
                }
                Err(error) => drop(report.broken.insert(path, error)),
            }
        }
        report
    })
    .await
}

/// Fetches one page when it is its turn, and again by the schedule if the server is busy.
async fn fetch_politely(site: &Site, pace: &Pace, path: &str) -> Result<Page, HttpError> {
    retry_if(
        AGAIN,
        |error| *error == HttpError::Busy,
        async || {
            pace.turn().await;
            site.get(path).await
        },
    )
    .await
}

/// Lets one request pass in each interval.
#[derive(Debug)]
struct Pace {
    interval: Duration,
    gate: sync::Mutex<()>,
}

impl Pace {
    fn new(interval: Duration) -> Self {
        Self { interval, gate: sync::Mutex::new(()) }
    }

    /// Waits for its turn. The lock is granted in the order of arrival; a task that is stopped while it waits leaves the queue.
    async fn turn(&self) {
        let _passing = self.gate.lock().await;
        sleep(self.interval).await;
    }
}

/// Counts of pages while the crawl runs.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    known: usize,
    fetched: usize,
    broken: usize,
    under_way: usize,
}

/// Result of a crawl.
#[derive(Debug, Default)]
pub struct Report {
    /// Size of each fetched page, by address.
    pub pages: BTreeMap<String, usize>,
    /// Errors of the pages that could not be fetched, by address.
    pub broken: BTreeMap<String, HttpError>,
}

impl BodyOutput for Report {}

/// A page.
#[derive(Clone, Debug)]
pub struct Page {
    bytes: usize,
    links: Vec<String>,
}

/// Error of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpError {
    /// 404.
    NotFound,
    /// 503: it may succeed later.
    Busy,
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound => "404 not found",
            Self::Busy => "503 busy, each time",
        })
    }
}

impl std::error::Error for HttpError {}

/// Site in memory, which counts its requests.
#[derive(Clone, Debug)]
pub struct Site(Arc<Mutex<Server>>);

#[derive(Debug, Default)]
struct Server {
    pages: BTreeMap<String, Page>,
    /// Number of times that each of these pages is busy before it answers.
    busy: BTreeMap<String, u32>,
    requests: BTreeMap<String, u32>,
    connections: usize,
    most_connections: usize,
}

impl Site {
    const FIRST: &'static str = "/";

    /// Creates a site of `pages` pages, with some broken links.
    pub fn sample(pages: usize) -> Self {
        let path = |n: usize| if n == 0 { Self::FIRST.to_owned() } else { format!("/page/{n}") };
        let mut server = Server::default();
        for n in 0..pages {
            let mut links: Vec<_> =
                (3 * n + 1..=3 * n + 3).filter(|below| *below < pages).map(path).collect();
            links.push(path(n / 2));
            if n % 17 == 5 {
                links.push(format!("/moved/{n}"));
            }
            server.pages.insert(path(n), Page { bytes: 1000 + n * n * 37 % 5000, links });
        }
        server.busy.extend([(path(2), 1), (path(4), 9)]);
        Self(Arc::new(Mutex::new(server)))
    }

    fn lock(&self) -> MutexGuard<'_, Server> {
        self.0.lock().unwrap()
    }

    /// Sends a request, over a connection that is closed however this ends.
    async fn get(&self, path: &str) -> Result<Page, HttpError> {
        using(Connection::open(self.clone(), path), async |_connection| {
            sleep(Duration::from_millis(20 + path.len() as u64 * 3)).await;
            let mut server = self.lock();
            if let Some(left @ 1..) = server.busy.get_mut(path) {
                *left -= 1;
                return Err(HttpError::Busy);
            }
            server.pages.get(path).cloned().ok_or(HttpError::NotFound)
        })
        .await
    }

    /// Returns the number of open connections, and the maximum so far.
    pub fn connections(&self) -> (usize, usize) {
        let server = self.lock();
        (server.connections, server.most_connections)
    }

    /// Returns the number of requests for each page.
    pub fn requests(&self) -> BTreeMap<String, u32> {
        self.lock().requests.clone()
    }
}

struct Connection(Site);

impl Connection {
    fn open(site: Site, path: &str) -> Self {
        let mut server = site.lock();
        *server.requests.entry(path.to_owned()).or_default() += 1;
        server.connections += 1;
        server.most_connections = server.most_connections.max(server.connections);
        drop(server);
        Self(site)
    }
}

impl AsyncClose for Connection {
    type Error = Never;

    async fn close(self, _: Exit) -> Result<(), Never> {
        checkpoint().await;
        self.0.lock().connections -= 1;
        Ok(())
    }
}

/// Prints the progress: in one line of a terminal that is overwritten, or else in a new line from time to time.
struct Display {
    started: Instant,
    in_place: bool,
    told: usize,
}

impl Display {
    fn new() -> Self {
        Self { started: Instant::now(), in_place: std::io::stdout().is_terminal(), told: 0 }
    }

    fn draw(&mut self, progress: &Progress) {
        const WIDTH: usize = 30;
        let done = progress.fetched + progress.broken;
        if !self.in_place && done < self.told && done < progress.known {
            return;
        }
        self.told = done + 10;
        let full = WIDTH * done / progress.known;
        let line = format!(
            "[{}{}] {done:>3} of {:>3} known pages, {} under way, {:>4} ms",
            "#".repeat(full),
            ".".repeat(WIDTH - full),
            progress.known,
            progress.under_way,
            self.started.elapsed().as_millis(),
        );
        if self.in_place {
            print!("\r{line}");
            // An error of the output is ignored: progress is not essential.
            let _ = std::io::stdout().flush();
        } else {
            println!("{line}");
        }
    }

    fn end(&self) {
        if self.in_place {
            println!();
        }
    }
}

fn print(site: &Site, report: &Report) {
    let requests = site.requests();
    let bytes: usize = report.pages.values().sum();
    println!("\n{:>5} pages, {:.1} KiB", report.pages.len(), bytes as f64 / 1024.0);
    println!("{:>5} requests, at most {} at a time", requests.values().sum::<u32>(), site.connections().1);
    println!("{:>5} broken links\n\npath          requests  what is wrong", report.broken.len());
    for (path, error) in &report.broken {
        println!("{path:<12} {:>9}  {error}", requests[path]);
    }
}
