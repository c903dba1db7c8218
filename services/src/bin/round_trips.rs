//! `SELECT 1`, one after the other: `convoke-postgres` and tokio-postgres on Convoke beside tokio-postgres on tokio. Prints the round trips
//! of each per second of CPU time, alternating in one process.
//!
//! ```text
//! CONVOKE_TEST_POSTGRES='host=127.0.0.1 user=…' cargo run --release --bin round_trips
//! ```

use std::time::{Duration, Instant};

use convoke::net::TcpStream;
use convoke::prelude::*;
use convoke_postgres::tokio_postgres::{Client, Config, NoTls};
use convoke_postgres::{Error, PoolOptions};
use convoke_services::service;
use convoke_tokio::CompatExt;

/// Round trips of one measurement, and measurements of each kind.
const TRIPS: u32 = 10_000;
const ROUNDS: usize = 7;

/// Returns the CPU time of the threads of this process, in the program and in the kernel.
fn cpu_time() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds = threads.filter_map(|thread| {
        let times = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        times.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

async fn trips(client: &Client) -> Result<(), Error> {
    let statement = client.prepare("SELECT 1").await?;
    for _ in 0..TRIPS {
        client.query_one(&statement, &[]).await?;
    }
    Ok(())
}

/// By the pool, whose statements can be stopped.
async fn by_pool(config: Config) -> Result<(), Error> {
    PoolOptions::new(config)
        .run(async |pool| {
            using(pool.get().await?, async |connection| {
                let statement = connection.prepare_cached("SELECT 1").await?;
                for _ in 0..TRIPS {
                    connection.query_one(&statement, &[]).await?;
                }
                Ok(())
            })
            .await
        })
        .await
}

/// By tokio-postgres alone, on Convoke.
async fn alone(config: Config, port: u16) -> Result<(), Error> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    let (client, connection) = config.connect_raw(stream.compat(), NoTls).await?;
    scope(async |s| {
        s.spawn(async move { shield(connection).await.map_err(Error::from) });
        trips(&client).await?;
        drop(client);
        Ok(())
    })
    .await
}

async fn on_tokio(config: Config, port: u16) -> Result<(), Error> {
    let stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    let (client, connection) = config.connect_raw(stream, NoTls).await?;
    let driver = tokio::spawn(connection);
    trips(&client).await?;
    drop(client);
    driver.await.map_err(std::io::Error::other)?.map_err(Error::from)
}

fn main() -> Result<(), Error> {
    let config: Config = service("CONVOKE_TEST_POSTGRES").parse()?;
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let runtime = convoke::Runtime::builder().contexts(1).pool_threads(1).build()?;
    let names = ["convoke-postgres", "tokio-postgres on Convoke", "tokio-postgres on tokio"];
    let mut figures = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for (kind, figures) in figures.iter_mut().enumerate() {
            let (begun, before) = (Instant::now(), cpu_time());
            match kind {
                0 => runtime.block_on(by_pool(config.clone())).unwrap()?,
                1 => runtime.block_on(alone(config.clone(), port)).unwrap()?,
                _ => tokio.block_on(on_tokio(config.clone(), port))?,
            }
            let cpu = cpu_time() - before;
            figures.push((f64::from(TRIPS) / cpu.as_secs_f64(), begun.elapsed() / TRIPS));
        }
    }
    for (name, mut figures) in names.into_iter().zip(figures) {
        figures.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (per_second, each) = figures[ROUNDS / 2];
        println!("{name:<28} {per_second:>9.0} round trips per CPU second, {each:?} each");
    }
    Ok(())
}
