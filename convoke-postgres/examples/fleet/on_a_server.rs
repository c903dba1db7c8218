//! The program on a server that `DATABASE_URL` names.

use std::io;

use convoke::prelude::*;
use convoke::sync::watch;
use convoke_postgres::{Error, PoolOptions};

use crate::worker;

/// Lanes of a worker, and connections of its pool.
const LANES: usize = 4;

#[convoke::main(contexts = 1, pool_threads = 1)]
pub(crate) async fn main() -> Result<(), Error> {
    let url = std::env::var("DATABASE_URL").map_err(io::Error::other)?;
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    PoolOptions::new(url.parse()?)
        .connections(LANES)
        .run(async |pool| match arguments[..] {
            ["set-up", jobs] => set_up(&pool, jobs).await,
            ["work", name] => {
                let (done, seen) = watch::channel(0);
                // Also if it is stopped.
                let farewell = async |exit: Exit| println!("{name}: {} jobs; {exit}", *seen.borrow());
                ensure(farewell, worker::work(&pool, name, LANES, done)).await
            }
            _ => {
                eprintln!("`set-up <jobs>` or `work <name>`");
                Ok(())
            }
        })
        .await
}

async fn set_up(pool: &convoke_postgres::Pool, jobs: &str) -> Result<(), Error> {
    let jobs: i64 = jobs.parse().map_err(io::Error::other)?;
    pool.transaction(async |tx| {
        tx.batch_execute(
            "DROP TABLE IF EXISTS jobs, effects;
             CREATE TABLE jobs (id bigint PRIMARY KEY, done_by text);
             CREATE TABLE effects (job bigint NOT NULL, worker text NOT NULL);
             CREATE INDEX ON jobs (id) WHERE done_by IS NULL",
        )
        .await?;
        tx.execute("INSERT INTO jobs SELECT generate_series(1, $1::bigint)", &[&jobs]).await?;
        Ok(())
    })
    .await
}
