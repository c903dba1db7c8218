//! An application of axum in the simulator, unmodified: its database, its load, partitions, crashes, a drain, and seeds.
//!
//! The host `web` runs [`application`], which is what it would be on a real machine: axum's router over a pool of PostgreSQL
//! connections. The database is a host with the server of `convoke_postgres::testing`. Two hosts send orders by HTTP, and repeat each
//! under the same number until it is acknowledged. The seed decides which hosts are cut off from each other, crash and are drained,
//! and when. In the end, every acknowledged order is in the database with its amount, and every order was booked once. The same seed
//! is the same run: the log is the same, to the microsecond.
//!
//! ```text
//! cargo run --release -p convoke-http --features tower,client --example simulated_service -- 100
//! ```

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::put;
use convoke::prelude::*;
use convoke::retry::{Backoff, retry};
use convoke::sim::{Sim, SimReport, explore_seeds};
use convoke::time::now;
use convoke_http::{Client, Server, tower};
use convoke_postgres::testing::{FakeError, FakeServer};
use convoke_postgres::tokio_postgres::Config;
use convoke_postgres::tokio_postgres::error::SqlState;
use convoke_postgres::tokio_postgres::types::Type;
use convoke_postgres::{Error, Pool, PoolOptions};

const CUSTOMERS: [&str; 2] = ["ada", "bob"];
/// Number of orders of each customer.
const ORDERS: i64 = 10;
/// Time in which there is a fault every few seconds. After it, all faults are repaired.
const TROUBLE: u64 = 40;

// The application: nothing in it knows of a simulation.

const ADD_ORDER: &str = "INSERT INTO orders (number, amount) VALUES ($1, $2) ON CONFLICT DO NOTHING";
const BOOK: &str = "INSERT INTO bookings (number, amount) VALUES ($1, $2)";

/// Routes of the application.
pub fn application(pool: Pool) -> Router {
    Router::new().route("/orders/{number}", put(order)).with_state(pool)
}

/// Stores an order. It is idempotent: the number is the client's.
async fn order(State(pool): State<Pool>, Path(number): Path<i64>, amount: String) -> (StatusCode, String) {
    match timeout(Duration::from_secs(2), store(&pool, number, &amount)).await {
        Ok(Ok(())) => (StatusCode::OK, format!("order {number} of {amount}")),
        Ok(Err(error)) => (StatusCode::BAD_GATEWAY, error.to_string()),
        Err(_) => (StatusCode::GATEWAY_TIMEOUT, "the database does not answer".to_owned()),
    }
}

/// Adds an order and books it, both or neither. An order that is there was booked.
async fn store(pool: &Pool, number: i64, amount: &str) -> Result<(), Error> {
    pool.transaction(async |tx| {
        if tx.execute(ADD_ORDER, &[&number, &amount]).await? == 1 {
            tx.execute(BOOK, &[&number, &amount]).await?;
        }
        Ok(())
    })
    .await
}

/// Program of the host `web`.
async fn web(log: Log) -> io::Result<()> {
    log.add("web starts");
    let requests = log.clone();
    let mut config = Config::new();
    config.host("database").user("shop").dbname("shop");
    let options = PoolOptions::new(config).connections(4).connect_time(Duration::from_secs(1));
    options
        .cancel_time(Duration::from_secs(1))
        .run(async |pool| {
            Server::new("0.0.0.0:80", tower(application(pool)))
                .grace(Duration::from_secs(5))
                .on_request(move |record| {
                    requests.add(format!("{} {}", record.uri.path(), Status(record.status)));
                })
                .report(|_| ())
                .await
        })
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

/// The tables of the database.
#[derive(Clone, Debug, Default)]
struct Tables {
    /// Amounts of orders, by their numbers.
    orders: BTreeMap<i64, String>,
    bookings: Vec<(i64, String)>,
}

/// Creates the database, with the statements of the application.
fn database() -> FakeServer<Tables> {
    let parameters = [Type::INT8, Type::TEXT];
    FakeServer::new(Tables::default())
        .statement(ADD_ORDER, &parameters, &[], |call| {
            let (number, amount) = (call.parameter::<i64>(0), call.parameter::<String>(1));
            // The transaction of a web server that has crashed holds the order until the database finds out.
            if !call.try_lock(format!("order {number}")) {
                return Err(FakeError::new(SqlState::LOCK_NOT_AVAILABLE, "the order is being added"));
            }
            if !call.tables().orders.contains_key(&number) {
                call.change(move |tables| _ = tables.orders.insert(number, amount.clone()));
            }
            Ok(())
        })
        .statement(BOOK, &parameters, &[], |call| {
            let booking = (call.parameter::<i64>(0), call.parameter::<String>(1));
            call.change(move |tables| tables.bookings.push(booking.clone()));
            Ok(())
        })
}

/// Program of a customer: sends orders, each until it is acknowledged.
async fn customer(index: usize, log: Log) -> io::Result<()> {
    Client::builder()
        .total_time(Duration::from_secs(6))
        .run(async |client| {
            for order in 0..ORDERS {
                let number = index as i64 * 100 + order;
                let begun = now();
                let mut attempts = 0;
                retry(Backoff::constant(Duration::from_millis(500)), || {
                    attempts += 1;
                    acknowledge(&client, number)
                })
                .await
                .map_err(io::Error::other)?;
                log.acknowledged(number);
                let (name, time) = (CUSTOMERS[index], now() - begun);
                log.add(format!("{name}: {number} after {attempts} attempts, {time:?}"));
                sleep(Duration::from_secs(2)).await;
            }
            Ok(())
        })
        .await
}

/// Sends an order, and fails if it is not acknowledged.
async fn acknowledge(client: &Client, number: i64) -> Result<(), convoke_http::client::ClientError> {
    let request = client.put(format!("http://web/orders/{number}")).body(amount(number));
    request.send().await?.error_for_status()?.text().await.map(drop)
}

fn amount(number: i64) -> String {
    format!("{} EUR", 10 * number)
}

/// Facts that the test records, and that no host sees.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    lines: Vec<String>,
    acknowledged: Vec<i64>,
}

impl Log {
    fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().lines.push(line.into());
    }

    fn acknowledged(&self, number: i64) {
        self.0.lock().unwrap().acknowledged.push(number);
    }

    /// Lines so far.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().lines.clone()
    }
}

/// Sets up the hosts, their faults and the check in the end.
pub fn set_up(sim: &mut Sim) -> Log {
    let (log, database) = (Log::default(), database());
    sim.host("database").daemon().run_with(database.clone(), FakeServer::serve);
    sim.host("web").daemon().run_with(log.clone(), web);
    for (index, name) in CUSTOMERS.into_iter().enumerate() {
        sim.host(name).run_with(log.clone(), move |log| customer(index, log));
    }
    trouble(sim, &log);
    let checked = log.clone();
    sim.finally(move || {
        let acknowledged = checked.0.lock().unwrap().acknowledged.clone();
        let Tables { orders, mut bookings } = database.tables(|tables| tables.clone());
        if let Some(number) = acknowledged.iter().find(|number| orders.get(number) != Some(&amount(**number)))
        {
            return Err(format!("order {number} was acknowledged, and the database has {orders:?}"));
        }
        bookings.sort();
        if !bookings.iter().eq(orders.clone().into_iter().collect::<Vec<_>>().iter()) {
            return Err(format!("booked: {bookings:?}, and ordered: {orders:?}"));
        }
        database.assert_no_violation();
        Ok(())
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
                0 => (sim.partition("web", "database"), "web and database are cut off from each other").1,
                1 => (sim.partition("web", "ada"), "web and ada are cut off from each other").1,
                2 => (sim.crash("database"), "database crashes").1,
                3 => (sim.crash("web"), "web crashes").1,
                _ => (sim.stop("web"), "web is asked to stop").1,
            };
            log.add(format!("{:.1?}: {what}", sim.now()));
        });
        sim.at(end, move |sim| match kind {
            0 | 1 => sim.heal_all(),
            2 => sim.restart("database"),
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
    println!(
        "{seeds} seeds, {simulated:.0?} simulated: no acknowledged order was lost, and none was booked twice"
    );
}

/// Runs one seed.
pub fn run(seed: u64) -> (SimReport, Log) {
    let mut sim = Sim::new(seed);
    let log = set_up(&mut sim);
    (sim.run(), log)
}
