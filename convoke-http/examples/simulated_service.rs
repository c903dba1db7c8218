//! An application of axum in the simulator, unmodified: its database, its load, partitions, crashes, a drain, and seeds.
//!
//! The host `web` runs [`application`], which is what it would be on a real machine. It stores orders in a ledger on another host,
//! over TCP. Two hosts send orders, and repeat each under the same number until it is acknowledged. The seed decides which hosts
//! are cut off from each other, crash and are drained, and when. In the end, every acknowledged order is in the ledger,
//! with its amount. The same seed is the same run: the log is the same, to the microsecond.
//!
//! ```text
//! cargo run --release -p convoke-http --features tower --example simulated_service -- 100
//! ```

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::put;
use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::retry::{Backoff, retry};
use convoke::sim::{Disk, Sim, SimReport, explore_seeds};
use convoke::time::now;
use convoke_http::{Server, tower};

const CUSTOMERS: [&str; 2] = ["ada", "bob"];
/// Number of orders of each customer.
const ORDERS: u64 = 10;
/// Time in which there is a fault every few seconds. After it, all faults are repaired.
const TROUBLE: u64 = 40;

// The application: nothing in it knows of a simulation.

/// Address of the ledger.
type Ledger = &'static str;

/// Routes of the application.
pub fn application(ledger: Ledger) -> Router {
    Router::new().route("/orders/{number}", put(order)).with_state(ledger)
}

/// Stores an order. It is idempotent: the number is the client's.
async fn order(
    State(ledger): State<Ledger>,
    Path(number): Path<u64>,
    amount: String,
) -> (StatusCode, String) {
    match timeout(Duration::from_secs(2), store(ledger, number, &amount)).await {
        Ok(Ok(())) => (StatusCode::OK, format!("order {number} of {amount}")),
        Ok(Err(error)) => (StatusCode::BAD_GATEWAY, error.to_string()),
        Err(_) => (StatusCode::GATEWAY_TIMEOUT, "the ledger does not answer".to_owned()),
    }
}

/// Sends an order to the ledger, and waits until it is on its disk.
async fn store(ledger: Ledger, number: u64, amount: &str) -> io::Result<()> {
    let stream = TcpStream::connect(ledger).await?;
    stream.write_all(format!("{number} {amount}\n").as_bytes()).await?;
    match read_line(&stream).await?.as_str() {
        "stored" => Ok(()),
        other => Err(io::Error::other(format!("the ledger says {other:?}"))),
    }
}

async fn read_line(stream: &TcpStream) -> io::Result<String> {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        if stream.read_buf(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

/// Program of the host `web`.
async fn web(log: Log) -> io::Result<()> {
    log.add("web starts");
    let requests = log.clone();
    Server::new("0.0.0.0:80", tower(application("ledger:5000")))
        .grace(Duration::from_secs(5))
        .on_request(move |record| requests.add(format!("{} {}", record.uri.path(), Status(record.status))))
        .report(|_| ())
        .await
}

struct Status(Option<StatusCode>);

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(status) => write!(f, "{}", status.as_u16()),
            None => f.write_str("given up"),
        }
    }
}

// The rest of the world.

/// Orders on the disk of the ledger, by their numbers.
type Orders = BTreeMap<u64, String>;

/// Program of the host `ledger`.
async fn ledger(disk: Disk<Orders>) -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:5000").await?;
    convoke::net::serve(listener, move |stream: TcpStream, _| {
        let disk = disk.clone();
        async move {
            let line = read_line(&stream).await?;
            let Some((number, amount)) = line.split_once(' ') else { return Ok(()) };
            let number = number.parse().map_err(io::Error::other)?;
            // An order that was stored already is acknowledged again.
            disk.write(|orders| _ = orders.entry(number).or_insert_with(|| amount.to_owned()));
            disk.sync().await?;
            stream.write_all(b"stored\n").await
        }
    })
    .report(|_| ())
    .await
}

/// Program of a customer: sends orders, each until it is acknowledged.
async fn customer(index: usize, log: Log) -> io::Result<()> {
    for order in 0..ORDERS {
        let number = index as u64 * 100 + order;
        let begun = now();
        let mut attempts = 0;
        retry(Backoff::constant(Duration::from_millis(500)), || {
            attempts += 1;
            acknowledge(number)
        })
        .await?;
        log.acknowledged(number);
        log.add(format!("{}: {number} after {} attempts, {:?}", CUSTOMERS[index], attempts, now() - begun));
        sleep(Duration::from_secs(2)).await;
    }
    Ok(())
}

/// Sends an order, and fails if it is not acknowledged.
async fn acknowledge(number: u64) -> io::Result<()> {
    let (status, body) = timeout(Duration::from_secs(6), send(number)).await??;
    if status == 200 { Ok(()) } else { Err(io::Error::other(body)) }
}

fn amount(number: u64) -> String {
    format!("{} EUR", 10 * number)
}

/// Sends an order by HTTP. Returns the status, and the body.
async fn send(number: u64) -> io::Result<(u16, String)> {
    let stream = TcpStream::connect("web:80").await?;
    let body = amount(number);
    let head = format!("PUT /orders/{number} HTTP/1.1\r\nhost: web\r\ncontent-length: {}\r\n", body.len());
    stream.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes()).await?;
    let mut answer = Vec::new();
    while stream.read_buf(&mut answer).await? > 0 {}
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = head.get(9..12).and_then(|status| status.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    Ok((status, body.to_owned()))
}

/// Facts that the test records, and that no host sees.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    lines: Vec<String>,
    acknowledged: Vec<u64>,
}

impl Log {
    fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().lines.push(line.into());
    }

    fn acknowledged(&self, number: u64) {
        self.0.lock().unwrap().acknowledged.push(number);
    }

    /// Lines so far.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().lines.clone()
    }
}

/// Sets up the hosts, their faults and the check in the end.
pub fn set_up(sim: &mut Sim) -> Log {
    let (log, disk) = (Log::default(), sim.disk("ledger", Orders::new()));
    sim.host("ledger").daemon().run_with(disk.clone(), ledger);
    sim.host("web").daemon().run_with(log.clone(), web);
    for (index, name) in CUSTOMERS.into_iter().enumerate() {
        sim.host(name).run_with(log.clone(), move |log| customer(index, log));
    }
    trouble(sim, &log);
    let checked = log.clone();
    sim.finally(move || {
        let acknowledged = checked.0.lock().unwrap().acknowledged.clone();
        let stored = disk.read(Clone::clone);
        let lost = acknowledged.iter().find(|number| stored.get(number) != Some(&amount(**number)));
        match lost {
            None => Ok(()),
            Some(number) => Err(format!("order {number} was acknowledged, and the ledger has {stored:?}")),
        }
    });
    log
}

/// A fault every four seconds, of a kind that the seed decides, repaired three seconds later.
fn trouble(sim: &mut Sim, log: &Log) {
    for time in (3..TROUBLE).step_by(4) {
        let kind = sim.random(5);
        let (begin, end) = (Duration::from_secs(time), Duration::from_secs(time + 3));
        let log = log.clone();
        sim.at(begin, move |sim| {
            let what = match kind {
                0 => (sim.partition("web", "ledger"), "web and ledger are cut off from each other").1,
                1 => (sim.partition("web", "ada"), "web and ada are cut off from each other").1,
                2 => (sim.crash("ledger"), "ledger crashes").1,
                3 => (sim.crash("web"), "web crashes").1,
                _ => (sim.stop("web"), "web is asked to stop").1,
            };
            log.add(format!("{:.1?}: {what}", sim.now()));
        });
        sim.at(end, move |sim| match kind {
            0 | 1 => sim.heal_all(),
            2 => sim.restart("ledger"),
            _ => sim.restart("web"),
        });
    }
}

fn main() {
    let seeds = std::env::args().nth(1).map_or(40, |seeds| seeds.parse().expect("a number of seeds"));
    let first = run(0);
    assert_eq!(first.1.lines(), run(0).1.lines(), "the same seed is the same run");
    first.1.lines().iter().for_each(|line| println!("{line}"));
    let reports = explore_seeds(0..seeds, |sim| _ = set_up(sim));
    let simulated: Duration = reports.iter().map(SimReport::elapsed).sum();
    println!("{seeds} seeds, {simulated:.0?} simulated: no acknowledged order was lost");
}

/// Runs one seed.
pub fn run(seed: u64) -> (SimReport, Log) {
    let mut sim = Sim::new(seed);
    let log = set_up(&mut sim);
    (sim.run(), log)
}
