//! Stops at every moment of a transaction: the pool is never poisoned, and what is committed is what was told.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke::prelude::*;
use convoke::sim::{Fault, Sim, explore_faults, explore_host_stops};
use convoke::task::run_until_stopped;
use convoke_postgres::{Error, Pool};

use crate::fake::{Fake, numbers};
use crate::harness::{hosts, options, with_pool};

const INSERT: &str = "INSERT INTO numbers VALUES ($1)";

async fn transfer(pool: &Pool) -> Result<(), Error> {
    pool.transaction(async |tx| {
        tx.execute(INSERT, &[&1_i32]).await?;
        tx.query_one("SELECT 1", &[]).await?;
        tx.execute(INSERT, &[&2_i32]).await?;
        Ok(())
    })
    .await
}

/// Stops a transaction after `time`, then uses the only connection of the pool again.
fn stopped_after(time: Duration) -> (Fake, bool) {
    let committed = Arc::new(Mutex::new(None));
    let told = committed.clone();
    let (fake, _) = with_pool(options(), move |pool| {
        let told = told.clone();
        async move {
            let source = StopSource::new();
            let token = source.token();
            let ended = scope(async |s| {
                s.spawn(async move {
                    sleep(time).await;
                    source.request_stop(StopReason::Named("the client went away"));
                });
                run_until_stopped(token, transfer(&pool)).await
            });
            *told.lock().unwrap() = Some(matches!(ended.await, Ok(Ok(()))));
            pool.transaction(async |tx| tx.execute(INSERT, &[&3_i32]).await.map(drop)).await
        }
    });
    let committed = committed.lock().unwrap().expect("it has ended");
    (fake, committed)
}

#[test]
fn a_transaction_that_is_stopped_at_any_time_never_poisons_the_pool() {
    let (mut committed, mut rolled_back, mut cancelled) = (0, 0, 0);
    for microseconds in (0..160_000).step_by(300) {
        let (fake, is_committed) = stopped_after(Duration::from_micros(microseconds));
        let numbers: Vec<_> = fake.tables(|tables| tables.numbers.iter().copied().collect());
        let expected: &[i32] = if is_committed { &[1, 2, 3] } else { &[3] };
        assert_eq!(numbers, expected, "stopped after {microseconds} µs");
        assert!(fake.connections() <= 1, "the one connection was used again");
        (committed, rolled_back) =
            (committed + i32::from(is_committed), rolled_back + i32::from(!is_committed));
        cancelled += fake.cancels();
    }
    assert!(committed > 10 && rolled_back > 100 && cancelled > 50, "{committed} {rolled_back} {cancelled}");
}

#[test]
fn a_program_that_is_stopped_at_any_step_leaves_no_transaction_open() {
    let servers = Mutex::new(Vec::new());
    let exploration = explore_host_stops(1, "program", |sim: &mut Sim| {
        let fake = numbers();
        servers.lock().unwrap().push(fake.clone());
        hosts(sim, &fake, options(), async |pool| transfer(&pool).await);
    });
    assert!(exploration.runs().len() > 40, "{}", exploration.runs().len());
    for fake in servers.into_inner().unwrap() {
        fake.assert_no_violation();
        let (open, numbers) = (fake.open_transactions(), fake.tables(|tables| tables.numbers.len()));
        assert_eq!(open, 0);
        assert!([0, 2].contains(&numbers), "all or nothing");
    }
}

#[test]
fn a_fault_of_any_operation_is_an_error_and_poisons_nothing() {
    let servers = Mutex::new(Vec::new());
    explore_faults(1, "program", &Fault::ALL, |sim: &mut Sim| {
        let fake = numbers();
        servers.lock().unwrap().push(fake.clone());
        hosts(sim, &fake, options(), async |pool| {
            let first = transfer(&pool).await;
            // By another connection, if the first was lost.
            let second = pool.transaction(async |tx| tx.execute(INSERT, &[&3_i32]).await.map(drop)).await;
            first.and(second)
        });
    });
    for fake in servers.into_inner().unwrap() {
        fake.assert_no_violation();
        assert_eq!(fake.open_transactions(), 0);
    }
}
