//! `convoke-postgres` against PostgreSQL: stops at every await, requests to cancel, notifications, TLS, Unix sockets.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::time::Duration;

use convoke::prelude::*;
use convoke::task::run_until_stopped;
use convoke::tls::{Roots, TlsConnector};
use convoke_postgres::tokio_postgres::SimpleQueryMessage;
use convoke_postgres::tokio_postgres::config::SslMode;
use convoke_postgres::{Error, Isolation, Pool, PoolOptions};
use convoke_services::service;

fn options() -> PoolOptions {
    PoolOptions::new(service("CONVOKE_TEST_POSTGRES").parse().unwrap()).connections(1)
}

/// When a stop is requested.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// After the future was polled `n` times: at another await for each `n`.
    Polls(u32),
    /// After `n` microseconds, at any point of the server's work.
    Microseconds(u64),
}

/// Runs a future with a stop. `None` if it was stopped. Also returns true if the stop was requested before the future had ended.
async fn stopped_at<T>(moment: Moment, future: impl Future<Output = T>) -> (Option<T>, bool) {
    let source = StopSource::new();
    let token = source.token();
    let (mut polls, was_asked) = (0, Cell::new(false));
    let counted = async {
        let mut future = pin!(future);
        poll_fn(|cx| {
            let polled = future.as_mut().poll(cx);
            if polled.is_pending() && matches!(moment, Moment::Polls(most) if most == polls) {
                was_asked.set(true);
                source.request_stop(StopReason::Named("the client went away"));
            }
            polls += 1;
            polled
        })
        .await
    };
    let ended = match moment {
        Moment::Polls(_) => run_until_stopped(token, counted).await.ok(),
        Moment::Microseconds(time) => timeout(Duration::from_micros(time), counted).await.ok(),
    };
    (ended, was_asked.get())
}

async fn transfer(pool: &Pool, number: i32) -> Result<(), Error> {
    pool.transaction(async |tx| {
        tx.execute("INSERT INTO stops VALUES ($1)", &[&number]).await?;
        tx.query("SELECT pg_sleep(0.002)", &[]).await?;
        tx.execute("INSERT INTO stops VALUES ($1)", &[&(number + 1)]).await?;
        Ok(())
    })
    .await
}

#[convoke::test]
async fn a_transaction_that_is_stopped_at_every_await_never_poisons_the_pool() -> Result<(), Error> {
    options()
        .run(async |pool| {
            let first = using(pool.get().await?, async |connection| {
                connection.batch_execute("CREATE TABLE stops (number int PRIMARY KEY)").await?;
                Ok::<i32, Error>(connection.query_one("SELECT pg_backend_pid()", &[]).await?.get(0))
            })
            .await?;
            let (mut committed, mut stopped) = (0, 0);
            // After each poll, up to a run that ends before its turn has come. Then at times.
            let (mut polls, mut every_await_had_its_turn) = (0, false);
            let mut times = (0..80).map(|n| Moment::Microseconds(n * 100));
            for number in (0..).step_by(2) {
                let moment = if every_await_had_its_turn { times.next() } else { Some(Moment::Polls(polls)) };
                let Some(moment) = moment else { break };
                let (ended, was_asked) = stopped_at(moment, transfer(&pool, number)).await;
                if matches!(moment, Moment::Polls(_)) {
                    every_await_had_its_turn = !was_asked;
                    polls += 1;
                    assert!(polls < 1000, "a transaction is polled without end");
                }
                // The one connection, at once: it is idle, and knows what was told.
                let (rows, process) = using(pool.get().await?, async |connection| {
                    let rows = "SELECT count(*), pg_backend_pid() FROM stops WHERE number IN ($1, $2)";
                    let row = connection.query_one(rows, &[&number, &(number + 1)]).await?;
                    // In a transaction that is still open, `now()` is the time of its first statement. By one message: each of
                    // those that execute a prepared statement has a time of its own.
                    let answer = connection.simple_query("SELECT now() = statement_timestamp()").await?;
                    let is_alone = answer.iter().any(
                        |message| matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("t")),
                    );
                    assert!(is_alone, "{moment:?}");
                    Ok::<(i64, i32), Error>((row.get(0), row.get(1)))
                })
                .await?;
                match ended {
                    Some(ended) => {
                        ended?;
                        assert_eq!(rows, 2, "{moment:?}");
                        committed += 1;
                    }
                    None => {
                        assert_eq!(rows, 0, "{moment:?}");
                        stopped += 1;
                    }
                }
                assert_eq!(process, first, "the connection was never cut");
            }
            println!("{stopped} times stopped, {committed} times committed; {polls} polls");
            assert!(polls > 5, "it waits for each of its statements");
            assert!(stopped > 0 && committed > 0, "{stopped} {committed}");
            Ok(())
        })
        .await
}

#[convoke::test]
async fn a_stop_cancels_what_the_server_does() -> Result<(), Error> {
    options()
        .connections(2)
        .run(async |pool| {
            let sleeps = pool.transaction(async |tx| tx.query("SELECT pg_sleep(60)", &[]).await);
            assert!(timeout(Duration::from_millis(100), sleeps).await.is_err());
            using(pool.get().await?, async |connection| {
                let busy = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep(60)%'
                            AND pid <> pg_backend_pid()";
                assert_eq!(connection.query_one(busy, &[]).await?.get::<_, i64>(0), 0);
                Ok(())
            })
            .await
        })
        .await
}

#[convoke::test]
async fn a_copy_that_is_dropped_leaves_the_connection_usable() -> Result<(), Error> {
    options()
        .run(async |pool| {
            using(pool.get().await?, async |connection| {
                connection.batch_execute("CREATE TEMPORARY TABLE copied (number int)").await?;
                let copies =
                    connection.client().copy_in::<_, &'static [u8]>("COPY copied FROM STDIN").await?;
                drop(copies);
                Ok::<_, Error>(())
            })
            .await?;
            pool.transaction(async |tx| tx.batch_execute("SELECT 1").await).await
        })
        .await
}

#[convoke::test]
async fn serializable_transactions_that_collide_are_worth_a_retry() -> Result<(), Error> {
    options()
        .connections(2)
        .run(async |pool| {
            using(pool.get().await?, async |connection| {
                connection.batch_execute("CREATE TABLE colliding (id int PRIMARY KEY, n int)").await?;
                connection.batch_execute("INSERT INTO colliding VALUES (1, 0), (2, 0)").await
            })
            .await?;
            let how = convoke_postgres::Begin::new().isolation(Isolation::Serializable);
            let failed = using(pool.begin_with(how).await?, async |one| {
                one.query("SELECT sum(n) FROM colliding", &[]).await?;
                using(pool.begin_with(how).await?, async |other| {
                    other.query("SELECT sum(n) FROM colliding", &[]).await?;
                    other.execute("UPDATE colliding SET n = 1 WHERE id = 1", &[]).await
                })
                .await?;
                one.execute("UPDATE colliding SET n = 1 WHERE id = 2", &[]).await
            })
            .await
            .unwrap_err();
            assert!(failed.is_worth_a_retry(), "{failed}");
            Ok(())
        })
        .await
}

#[convoke::test]
async fn a_listener_hears_notifications() -> Result<(), Error> {
    options()
        .connections(2)
        .run(async |pool| {
            using(pool.listen(["orders", "a \"quoted\" name"]).await?, async |mut listener| {
                pool.transaction(async |tx| {
                    tx.batch_execute("NOTIFY orders, 'one'; NOTIFY \"a \"\"quoted\"\" name\", 'two'").await
                })
                .await?;
                for (channel, payload) in [("orders", "one"), ("a \"quoted\" name", "two")] {
                    let heard = listener.next().await.expect("the connection is there");
                    assert_eq!((heard.channel(), heard.payload()), (channel, payload));
                }
                // A stop while it waits loses nothing.
                assert!(timeout(Duration::from_millis(20), listener.next()).await.is_err());
                pool.transaction(async |tx| tx.batch_execute("NOTIFY orders, 'three'").await).await?;
                assert_eq!(listener.next().await.expect("the connection is there").payload(), "three");
                Ok::<_, Error>(())
            })
            .await?;
            // It is a connection of the pool no more.
            assert_eq!(pool.status().free, 1);
            Ok(())
        })
        .await
}

#[convoke::test]
async fn connections_are_encrypted_with_tls() -> Result<(), Error> {
    let Ok(certificate) = std::env::var("CONVOKE_TEST_POSTGRES_CERTIFICATE") else {
        println!("left out: there was no openssl to make a certificate");
        return Ok(());
    };
    let mut roots = Roots::new();
    roots.add_pem(&std::fs::read(certificate)?)?;
    let mut config: convoke_postgres::tokio_postgres::Config = service("CONVOKE_TEST_POSTGRES").parse()?;
    config.ssl_mode(SslMode::Require);
    PoolOptions::new(config)
        .tls(TlsConnector::new(roots)?)
        .run(async |pool| {
            let sleeps = pool.transaction(async |tx| tx.query("SELECT pg_sleep(60)", &[]).await);
            assert!(timeout(Duration::from_millis(100), sleeps).await.is_err());
            using(pool.get().await?, async |connection| {
                let encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
                assert!(connection.query_one(encrypted, &[]).await?.get::<_, bool>(0));
                Ok(())
            })
            .await
        })
        .await
}

#[convoke::test]
async fn unix_sockets_lead_to_the_server() -> Result<(), Error> {
    PoolOptions::new(service("CONVOKE_TEST_POSTGRES_SOCKET").parse()?)
        .run(async |pool| {
            let sleeps = pool.transaction(async |tx| tx.query("SELECT pg_sleep(60)", &[]).await);
            assert!(timeout(Duration::from_millis(100), sleeps).await.is_err());
            using(pool.get().await?, async |connection| {
                let address = "SELECT client_addr IS NULL FROM pg_stat_activity WHERE pid = pg_backend_pid()";
                assert!(connection.query_one(address, &[]).await?.get::<_, bool>(0));
                Ok(())
            })
            .await
        })
        .await
}
