//! Single statements on connections of a pool.

use convoke::prelude::*;
use convoke::time::now;
use convoke_postgres::tokio_postgres::error::SqlState;
use convoke_postgres::{Error, Pool};

use crate::harness::{milliseconds, options, seconds, with_pool};

async fn one(pool: &Pool) -> Result<i32, Error> {
    using(pool.get().await?, async |connection| Ok(connection.query_one("SELECT 1", &[]).await?.get(0))).await
}

#[test]
fn a_connection_is_used_again() {
    let (fake, _) = with_pool(options(), async |pool| {
        for _ in 0..3 {
            assert_eq!(one(&pool).await?, 1);
        }
        assert_eq!((pool.status().connections, pool.status().free), (1, 1));
        Ok(())
    });
    assert_eq!(fake.connections(), 1);
}

#[test]
fn every_way_to_send_a_statement_works() {
    with_pool(options(), async |pool| {
        using(pool.get().await?, async |connection| {
            assert_eq!(connection.execute("INSERT INTO numbers VALUES ($1)", &[&7_i32]).await?, 1);
            assert!(connection.query_opt("SELECT count(*) FROM numbers", &[]).await?.is_some());
            assert_eq!(connection.query("SELECT 1", &[]).await?.len(), 1);
            connection.batch_execute("SELECT 1; SELECT 1").await?;
            assert_eq!(connection.simple_query("SELECT 1").await?.len(), 3);
            let prepared = connection.prepare("SELECT 1").await?;
            assert_eq!(connection.query_one(&prepared, &[]).await?.get::<_, i32>(0), 1);
            Ok(())
        })
        .await
    });
}

#[test]
fn a_statement_is_prepared_once_if_it_is_cached() {
    let (fake, _) = with_pool(options(), async |pool| {
        for _ in 0..3 {
            using(pool.get().await?, async |connection| {
                let statement = connection.prepare_cached("SELECT 1").await?;
                let again = connection.prepare_cached("SELECT 1").await?;
                assert_eq!(statement.columns().len(), again.columns().len());
                connection.query_one(&statement, &[]).await
            })
            .await?;
        }
        Ok(())
    });
    assert_eq!(fake.statements(), ["SELECT 1"; 3]);
    assert_eq!(fake.prepared(), 1);
}

#[test]
fn an_error_of_the_server_leaves_the_connection_usable() {
    let (fake, _) = with_pool(options(), async |pool| {
        let failed =
            using(pool.get().await?, async |connection| connection.batch_execute("NONSENSE").await).await;
        let code = failed.unwrap_err().code().cloned();
        assert_eq!(code, Some(SqlState::SYNTAX_ERROR));
        assert_eq!(one(&pool).await?, 1);
        Ok(())
    });
    assert_eq!(fake.connections(), 1, "the same connection");
}

#[test]
fn a_stop_cancels_the_statement_on_the_server() {
    let (fake, report) = with_pool(options(), async |pool| {
        let begun = now();
        let sleeps = using(pool.get().await?, async |connection| {
            connection.query("SELECT pg_sleep(3600)", &[]).await.map(drop)
        });
        assert!(timeout(seconds(1), sleeps).await.is_err());
        assert!(now() - begun < seconds(2), "the server was asked to cancel it");
        assert_eq!(one(&pool).await?, 1);
        Ok(())
    });
    assert_eq!((fake.cancels(), fake.connections()), (1, 1), "{report:?}");
}

#[test]
fn a_stop_before_a_statement_sends_nothing() {
    let (fake, _) = with_pool(options(), async |pool| {
        using(pool.get().await?, async |connection| {
            let late = async {
                shield(sleep(milliseconds(50))).await;
                connection.batch_execute("SELECT 1").await
            };
            assert!(timeout(milliseconds(10), late).await.is_err());
            Ok(())
        })
        .await
    });
    assert!(fake.statements().is_empty(), "{:?}", fake.statements());
    assert_eq!(fake.cancels(), 0);
}

#[test]
fn a_statement_that_is_dropped_is_cancelled_before_the_connection_is_used_again() {
    let (fake, report) = with_pool(options(), async |pool| {
        using(pool.get().await?, async |connection| {
            let statement = connection.batch_execute("BEGIN; SELECT pg_sleep(3600)");
            let mut statement = Box::pin(statement);
            // A foreign `select!` drops what it has polled.
            std::future::poll_fn(|cx| {
                let _ = statement.as_mut().poll(cx);
                std::task::Poll::Ready(())
            })
            .await;
            drop(statement);
            sleep(milliseconds(100)).await;
            Ok::<_, Error>(())
        })
        .await?;
        assert_eq!(one(&pool).await?, 1);
        Ok(())
    });
    assert!(report.elapsed() < seconds(60), "{:?}", report.elapsed());
    assert_eq!((fake.cancels(), fake.connections()), (1, 1));
}

#[test]
fn a_transaction_begun_by_hand_and_forgotten_is_rolled_back() {
    let (fake, _) = with_pool(options(), async |pool| {
        let inserts = "INSERT INTO numbers VALUES ($1)";
        using(pool.get().await?, async |connection| {
            connection.batch_execute("BEGIN").await?;
            connection.execute(inserts, &[&1_i32]).await
        })
        .await?;
        // By the client of tokio-postgres, which nobody watches.
        using(pool.get().await?, async |connection| {
            connection.client().batch_execute("BEGIN").await?;
            connection.client().execute(inserts, &[&2_i32]).await.map_err(Error::from)
        })
        .await?;
        assert_eq!(one(&pool).await?, 1);
        Ok(())
    });
    assert!(fake.tables(|tables| tables.numbers.is_empty()));
    assert_eq!(fake.connections(), 1);
}

#[test]
fn a_connection_that_is_dropped_is_not_handed_out_again() {
    let (fake, _) = with_pool(options(), async |pool| {
        let connection = pool.get().await?;
        connection.batch_execute("BEGIN").await?;
        drop(connection);
        assert_eq!(one(&pool).await?, 1);
        Ok(())
    });
    assert_eq!(fake.connections(), 2);
}
