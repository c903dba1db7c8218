//! A worker over NATS JetStream: takes messages, writes their effects into PostgreSQL, then acknowledges. Started as often as one
//! likes; ends when no message is left.
//!
//! A message is delivered at least once: a worker that is killed between its commit and its acknowledgement leaves a message that
//! is delivered again. Its key makes the effect happen once.

use std::time::Duration;

use async_nats::jetstream::consumer::{PullConsumer, pull};
use async_nats::jetstream::{self, Message};
use convoke::prelude::*;
use convoke_postgres::{Error, Pool, PoolOptions};
use convoke_services::service;
use convoke_tokio::tokio_guest;
use futures_util::StreamExt;

/// Messages that are asked for at a time.
const BATCH: usize = 8;
/// Time after which a message that was not acknowledged is delivered again.
const ACK_WAIT: Duration = Duration::from_secs(1);

type AnyError = Box<dyn std::error::Error + Send + Sync>;

const EFFECT: &str = "INSERT INTO effects (job, worker) VALUES ($1, $2) ON CONFLICT (job) DO NOTHING";

#[convoke::main(contexts = 1, pool_threads = 1)]
async fn main() -> Result<(), AnyError> {
    let name = std::env::args().nth(1).ok_or("the name of the worker is missing")?;
    let consumer = tokio_guest(|| async {
        let context = jetstream::new(async_nats::connect(service("CONVOKE_TEST_NATS")).await?);
        let config =
            pull::Config { durable_name: Some("fleet".into()), ack_wait: ACK_WAIT, ..Default::default() };
        Ok::<_, AnyError>(context.get_stream("fleet").await?.get_or_create_consumer("fleet", config).await?)
    })
    .await?;
    let farewell = async |exit: Exit| println!("{name}: {exit}");
    let works = async {
        let options = PoolOptions::new(service("DATABASE_URL").parse()?).connections(2);
        options.run(async |pool| work(&pool, &consumer, &name).await).await
    };
    ensure(farewell, works).await
}

async fn work(pool: &Pool, consumer: &PullConsumer, name: &str) -> Result<(), AnyError> {
    loop {
        // A batch that has arrived is finished before the worker ends; one that is waited for is not.
        let messages = tokio_guest(|| async {
            let batch = consumer.batch().max_messages(BATCH).expires(ACK_WAIT / 2);
            Ok::<_, AnyError>(batch.messages().await?.collect::<Vec<_>>().await)
        });
        let messages = messages.await?;
        let is_empty = messages.is_empty();
        shield(async {
            for message in messages {
                one(pool, message?, name).await?;
            }
            Ok::<_, AnyError>(())
        })
        .await?;
        if is_empty && tokio_guest(|| async { is_finished(consumer).await }).await? {
            return Ok(());
        }
        checkpoint().await;
    }
}

/// Does what a message asks for, and acknowledges it.
async fn one(pool: &Pool, message: Message, name: &str) -> Result<(), AnyError> {
    let job: i64 = std::str::from_utf8(&message.payload)?.parse()?;
    pool.transaction(async |tx| {
        sleep(Duration::from_millis(2)).await;
        tx.execute(&tx.prepare_cached(EFFECT).await?, &[&job, &name]).await?;
        Ok::<_, Error>(())
    })
    .await?;
    tokio_guest(|| message.double_ack()).await
}

/// Returns true if every message was acknowledged.
async fn is_finished(consumer: &PullConsumer) -> Result<bool, AnyError> {
    let mut consumer = consumer.clone();
    let info = consumer.info().await?;
    Ok(info.num_pending == 0 && info.num_ack_pending == 0)
}
