//! A fleet over NATS JetStream, with its effects in PostgreSQL: one worker is killed, one is asked to end.

use std::process::Command;

use async_nats::jetstream::{self, stream};
use convoke::Runtime;
use convoke::prelude::*;
use convoke_postgres::{Error, PoolOptions};
use convoke_services::service;
use convoke_tokio::tokio_guest;

use crate::fleet_postgres::{ask, database_named};
use crate::workers::{Worker, wait_until};

const JOBS: i64 = 600;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Makes the stream with its messages, and the table of effects.
async fn set_up(database: String) -> Result<(), AnyError> {
    tokio_guest(|| async {
        let context = jetstream::new(async_nats::connect(service("CONVOKE_TEST_NATS")).await?);
        let config =
            stream::Config { name: "fleet".into(), subjects: vec!["jobs".into()], ..Default::default() };
        context.create_stream(config).await?;
        let mut sent = Vec::new();
        for job in 0..JOBS {
            sent.push(context.publish("jobs", job.to_string().into()).await?);
        }
        for acknowledged in sent {
            acknowledged.await?;
        }
        Ok::<_, AnyError>(())
    })
    .await?;
    let makes = PoolOptions::new(database.parse()?).run(async |pool| {
        using(pool.get().await?, async |connection| {
            connection.batch_execute("CREATE TABLE effects (job bigint PRIMARY KEY, worker text)").await
        })
        .await
    });
    makes.await.map_err(Error::into)
}

#[test]
fn a_fleet_loses_no_message_when_one_worker_is_killed_and_another_asked_to_end() {
    let database = database_named("fleet_nats");
    let runtime = Runtime::builder().contexts(1).pool_threads(1).build().unwrap();
    runtime.block_on(set_up(database.clone())).unwrap().unwrap();
    let [killed, terminated, left] = ["killed", "terminated", "left"].map(|name| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fleet_nats"));
        Worker::start(command.arg(name).env("DATABASE_URL", &database))
    });
    let done = || ask(&database, "SELECT count(*) FROM effects");
    wait_until("a fifth of the jobs", || done() > JOBS / 5);
    killed.kill();
    wait_until("two fifths of the jobs", || done() > 2 * JOBS / 5);
    terminated.terminate();
    let (status, farewell) = terminated.wait();
    assert_eq!(status.code(), Some(143), "{farewell}");
    let (status, farewell) = left.wait();
    assert!(status.success(), "{farewell}");
    // The key of the table makes it at most once.
    assert_eq!(done(), JOBS);
    println!("{JOBS} messages, {} effects", done());
}
