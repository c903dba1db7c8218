//! Transactions: each way in which a body can end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke::prelude::*;
use convoke_postgres::{Begin, Error, Isolation, Pool};

use crate::harness::{options, seconds, with_pool};

const INSERT: &str = "INSERT INTO numbers VALUES ($1)";

async fn insert(pool: &Pool, number: i32) -> Result<(), Error> {
    pool.transaction(async |tx| tx.execute(INSERT, &[&number]).await.map(drop)).await
}

#[test]
fn a_body_that_returns_a_value_commits() {
    let (fake, _) = with_pool(options(), async |pool| {
        insert(&pool, 1).await?;
        let how = Begin::new().isolation(Isolation::Serializable).read_only();
        using(pool.begin_with(how).await?, async |tx| tx.batch_execute("SELECT 1").await).await
    });
    assert_eq!(fake.tables(|tables| tables.numbers.len()), 1);
    assert!(fake.statements().contains(&"BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY".to_owned()));
    assert_eq!(fake.statements().iter().filter(|text| *text == "COMMIT").count(), 2);
}

#[test]
fn an_error_rolls_back() {
    let (fake, _) = with_pool(options(), async |pool| {
        let failed = pool.transaction(async |tx| {
            tx.execute(INSERT, &[&1_i32]).await?;
            Err::<(), _>(Error::Closed)
        });
        assert!(matches!(failed.await, Err(Error::Closed)));
        insert(&pool, 2).await
    });
    assert_eq!(fake.tables(|tables| tables.numbers.clone()).into_iter().collect::<Vec<_>>(), [2]);
    assert_eq!(fake.connections(), 1);
}

#[test]
fn a_panic_rolls_back() {
    let (fake, _) = with_pool(options(), async |pool| {
        let used = pool.clone();
        let panics = async move {
            used.transaction(async |tx| {
                tx.execute(INSERT, &[&1_i32]).await?;
                if tx.query("SELECT 1", &[]).await?.len() == 1 {
                    panic!("in the middle of a transaction");
                }
                Ok::<_, Error>(())
            })
            .await
        };
        let failures = Arc::new(AtomicUsize::new(0));
        let counted = failures.clone();
        scope(async |s| {
            let supervisor = s.supervise(move |_| _ = counted.fetch_add(1, Ordering::Relaxed));
            supervisor.spawn(panics);
        })
        .await;
        assert_eq!(failures.load(Ordering::Relaxed), 1);
        insert(&pool, 2).await
    });
    assert_eq!(fake.tables(|tables| tables.numbers.clone()).into_iter().collect::<Vec<_>>(), [2]);
    assert_eq!(fake.connections(), 1);
}

#[test]
fn a_stop_at_a_wait_of_the_body_rolls_back() {
    let (fake, _) = with_pool(options(), async |pool| {
        let waits = pool.transaction(async |tx| {
            tx.execute(INSERT, &[&1_i32]).await?;
            sleep(seconds(3600)).await;
            Ok::<_, Error>(())
        });
        assert!(timeout(seconds(1), waits).await.is_err());
        insert(&pool, 2).await
    });
    assert_eq!(fake.tables(|tables| tables.numbers.clone()).into_iter().collect::<Vec<_>>(), [2]);
    assert_eq!((fake.cancels(), fake.connections()), (0, 1));
}

#[test]
fn a_stop_in_a_statement_cancels_it_and_rolls_back() {
    let (fake, report) = with_pool(options(), async |pool| {
        let waits = pool.transaction(async |tx| {
            tx.execute(INSERT, &[&1_i32]).await?;
            tx.query("SELECT pg_sleep(3600)", &[]).await
        });
        assert!(timeout(seconds(1), waits).await.is_err());
        insert(&pool, 2).await
    });
    assert!(report.elapsed() < seconds(30), "{:?}", report.elapsed());
    assert_eq!(fake.tables(|tables| tables.numbers.clone()).into_iter().collect::<Vec<_>>(), [2]);
    assert_eq!((fake.cancels(), fake.connections()), (1, 1));
}

#[test]
fn a_body_that_ignores_a_failed_statement_does_not_seem_to_commit() {
    let (fake, _) = with_pool(options(), async |pool| {
        let ended = pool.transaction(async |tx| {
            tx.execute(INSERT, &[&1_i32]).await?;
            let _ = tx.batch_execute("NONSENSE").await;
            Ok::<_, Error>(())
        });
        assert!(matches!(ended.await, Err(Error::RolledBack)));
        // The same with a part that is stopped, and a body that goes on.
        let ended = pool.transaction(async |tx| {
            let part = timeout(seconds(1), tx.query("SELECT pg_sleep(3600)", &[])).await;
            assert!(part.is_err());
            Ok::<_, Error>(())
        });
        assert!(matches!(ended.await, Err(Error::RolledBack)));
        insert(&pool, 2).await
    });
    assert_eq!(fake.tables(|tables| tables.numbers.clone()).into_iter().collect::<Vec<_>>(), [2]);
    assert_eq!(fake.connections(), 1);
}

#[test]
fn a_transaction_that_is_dropped_is_rolled_back_by_the_server() {
    let (fake, _) = with_pool(options(), async |pool| {
        let tx = pool.begin().await?;
        tx.execute(INSERT, &[&1_i32]).await?;
        drop(tx);
        insert(&pool, 2).await
    });
    assert_eq!(fake.tables(|tables| tables.numbers.clone()).into_iter().collect::<Vec<_>>(), [2]);
    assert_eq!(fake.connections(), 2);
}
