//! A worker: takes jobs from a table, each in a transaction that holds its row (`SKIP LOCKED`), until none is left.
//!
//! The effect of a job is written in the same transaction as the note that it is done. So it happens exactly once, whatever becomes of
//! the worker: killed, it leaves a transaction that the server rolls back, and the next worker takes the job.

use std::time::Duration;

use convoke::prelude::*;
use convoke::retry::{Backoff, retry};
use convoke::sync::watch;
use convoke_postgres::{Error, Pool};

/// Time that a job which has begun may take to end after the worker was asked to stop. Then it is rolled back.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Pause before jobs are looked for again, while others work on those that are left.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) const TAKE: &str =
    "SELECT id FROM jobs WHERE done_by IS NULL ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1";
pub(crate) const COUNT: &str = "SELECT count(*) FROM jobs WHERE done_by IS NULL";
pub(crate) const DONE: &str = "UPDATE jobs SET done_by = $2 WHERE id = $1";
pub(crate) const EFFECT: &str = "INSERT INTO effects (job, worker) VALUES ($1, $2)";

/// Result of a look into the table.
enum Turn {
    Done,
    /// Others work on those that are left.
    NoneFree,
    NoneLeft,
}

/// Works in `lanes` lanes until no job is left. Counts the jobs in `done`.
pub(crate) async fn work(
    pool: &Pool,
    name: &str,
    lanes: usize,
    done: watch::Sender<u32>,
) -> Result<(), Error> {
    scope(async |s| {
        for lane in 0..lanes {
            let (pool, name, done) = (pool.clone(), name.to_owned(), done.clone());
            s.named(format!("lane {lane}")).spawn(async move {
                loop {
                    // A job that has begun is finished before the worker ends.
                    let turn = shield(next_job(&pool, &name)).grace(DRAIN_TIME).await?;
                    match turn {
                        Turn::Done => done.modify(|done| *done += 1),
                        Turn::NoneFree => sleep(PAUSE).await,
                        Turn::NoneLeft => return Ok(()),
                    }
                    checkpoint().await;
                }
            });
        }
        Ok(())
    })
    .await
}

/// Does a job. A lost connection is no reason to give up: a transaction that may have been committed or not is looked at
/// again, with the next job.
async fn next_job(pool: &Pool, name: &str) -> Result<Turn, Error> {
    let attempts = Backoff::exponential(Duration::from_millis(50)).up_to(20);
    retry(attempts, async || job(pool, name).await).await
}

async fn job(pool: &Pool, name: &str) -> Result<Turn, Error> {
    pool.transaction(async |tx| {
        let Some(row) = tx.query_opt(&tx.prepare_cached(TAKE).await?, &[]).await? else {
            let left: i64 = tx.query_one(&tx.prepare_cached(COUNT).await?, &[]).await?.get(0);
            return Ok(if left > 0 { Turn::NoneFree } else { Turn::NoneLeft });
        };
        let id: i64 = row.get(0);
        // The work.
        sleep(Duration::from_millis(3 + id.unsigned_abs() * 7 % 10)).await;
        tx.execute(&tx.prepare_cached(DONE).await?, &[&id, &name]).await?;
        tx.execute(&tx.prepare_cached(EFFECT).await?, &[&id, &name]).await?;
        Ok(Turn::Done)
    })
    .await
}
