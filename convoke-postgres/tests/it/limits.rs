//! The limits of a pool, servers that do not answer, and the end.

use convoke::prelude::*;
use convoke::sim::Sim;
use convoke::time::now;
use convoke_postgres::Error;
use convoke_postgres::tokio_postgres::error::SqlState;

use crate::fake::{Fake, numbers};
use crate::harness::{hosts, milliseconds, options, seconds, with_pool};

#[test]
fn connections_are_bounded_and_handed_on_in_turn() {
    let (fake, _) = with_pool(options().connections(3), async |pool| {
        scope(async |s| {
            for _ in 0..20 {
                let pool = pool.clone();
                s.spawn(async move {
                    pool.transaction(async |tx| {
                        assert!(pool.status().in_use() <= 3);
                        tx.query("SELECT pg_sleep(0.1)", &[]).await.map(drop)
                    })
                    .await
                });
            }
            Ok::<_, Error>(())
        })
        .await
    });
    assert_eq!(fake.connections(), 3);
}

#[test]
fn a_pool_that_is_busy_for_too_long_says_so() {
    with_pool(options().acquire_time(seconds(2)), async |pool| {
        using(pool.get().await?, async |_| {
            let begun = now();
            let failed = pool.get().await.map(drop).unwrap_err();
            assert!(matches!(failed, Error::NoneFree { connections: 1, .. }), "{failed}");
            assert_eq!((now() - begun).as_secs(), 2);
            assert_eq!(failed.to_string(), "all 1 connections of the pool were in use for 2s");
            Ok(())
        })
        .await
    });
}

#[test]
fn a_task_that_is_stopped_while_its_connection_is_established_leaves_it_to_others() {
    for milliseconds_later in 0..6 {
        let (fake, _) = with_pool(options(), move |pool| async move {
            let _ = timeout(milliseconds(milliseconds_later), async { pool.get().await.map(drop) }).await;
            pool.transaction(async |tx| tx.batch_execute("SELECT 1").await).await
        });
        // A connection that somebody got, and dropped, is not used again.
        assert!((1..=2).contains(&fake.connections()), "{}", fake.connections());
    }
}

#[test]
fn connections_that_were_idle_for_too_long_are_replaced() {
    let (fake, _) = with_pool(options().idle_time(seconds(60)), async |pool| {
        for pause in [30, 30, 90] {
            pool.transaction(async |tx| tx.batch_execute("SELECT 1").await).await?;
            sleep(seconds(pause)).await;
        }
        pool.transaction(async |tx| tx.batch_execute("SELECT 1").await).await
    });
    assert_eq!(fake.connections(), 2);
}

#[test]
fn a_server_that_cannot_be_reached_is_an_error_in_time() {
    let mut sim = Sim::new(1);
    hosts(&mut sim, &numbers(), options().connect_time(seconds(3)), async |pool| {
        let begun = now();
        let failed = pool.get().await.map(drop).unwrap_err();
        assert!(matches!(failed, Error::Connect(_)), "{failed}");
        assert_eq!((now() - begun).as_secs(), 3);
        Ok(())
    });
    sim.partition("program", "database");
    sim.run();
}

#[test]
fn a_server_that_falls_silent_is_cut_off_and_the_pool_goes_on() {
    let fake = numbers();
    let mut sim = Sim::new(1);
    hosts(&mut sim, &fake, options().cancel_time(seconds(3)), async |pool| {
        let begun = now();
        let waits = pool.transaction(async |tx| tx.query("SELECT pg_sleep(3600)", &[]).await);
        assert!(timeout(seconds(5), waits).await.is_err());
        let took = now() - begun;
        assert!(took < seconds(5 + 2 * 3 + 1), "{took:?}");
        sleep(seconds(20)).await;
        pool.transaction(async |tx| tx.batch_execute("SELECT 1").await).await
    });
    sim.at(seconds(2), |sim| sim.partition("program", "database"));
    sim.at(seconds(20), |sim| sim.heal("program", "database"));
    sim.run();
    fake.assert_no_violation();
    assert_eq!(fake.connections(), 2);
}

#[test]
fn a_server_that_crashes_is_found_again() {
    let fake = numbers();
    let mut sim = Sim::new(1);
    hosts(&mut sim, &fake, options(), async |pool| {
        pool.transaction(async |tx| tx.batch_execute("SELECT 1").await).await?;
        sleep(seconds(10)).await;
        let attempts = convoke::retry::Backoff::constant(seconds(1)).up_to(30);
        convoke::retry::retry(attempts, async || {
            pool.transaction(async |tx| tx.batch_execute("SELECT 1").await).await
        })
        .await
    });
    sim.at(seconds(5), |sim| sim.crash("database"));
    sim.at(seconds(12), |sim| sim.restart("database"));
    sim.run();
    fake.assert_no_violation();
}

#[test]
fn a_server_that_crashes_while_it_works_on_a_statement_is_found_out() {
    let fake = numbers();
    let mut sim = Sim::new(1);
    hosts(&mut sim, &fake, options().keep_alive(seconds(20)), async |pool| {
        let begun = now();
        let ended = pool.transaction(async |tx| tx.query("SELECT pg_sleep(3600)", &[]).await).await;
        assert!(matches!(ended, Err(Error::Postgres(_))), "{ended:?}");
        assert!(now() - begun < seconds(60), "{:?}", now() - begun);
        pool.transaction(async |tx| tx.batch_execute("SELECT 1").await).await
    });
    sim.at(seconds(5), |sim| sim.crash("database"));
    sim.at(seconds(6), |sim| sim.restart("database"));
    sim.run();
    assert_eq!(fake.connections(), 2);
}

#[test]
fn the_end_of_a_pool_does_not_wait_for_a_connection_that_somebody_keeps() {
    let fake = numbers();
    let mut sim = Sim::new(1);
    sim.host("database").daemon().run_with(fake.clone(), Fake::serve);
    sim.host("program").run(async || {
        scope(async |s| {
            let pool_has_ended = std::sync::Arc::new(convoke::sync::Event::new());
            let ended = pool_has_ended.clone();
            let begun = now();
            let run = options().cancel_time(seconds(2)).run(async |pool| {
                let connection = pool.get().await?;
                connection.batch_execute("BEGIN").await?;
                s.spawn(async move {
                    ended.wait().await;
                    let failed = connection.batch_execute("SELECT 1").await;
                    assert!(failed.is_err(), "it was cut");
                    Ok(())
                });
                Ok::<_, Error>(())
            });
            run.await?;
            assert_eq!((now() - begun).as_secs(), 2);
            pool_has_ended.set();
            Ok::<_, std::io::Error>(())
        })
        .await
    });
    sim.run();
    assert_eq!(fake.open_transactions(), 0);
}

#[test]
fn statements_after_connect_run_once_on_each_new_connection() {
    const SET: &str = "SET search_path TO shop";
    let (fake, _) = with_pool(options().connections(2).after_connect(SET), async |pool| {
        for _ in 0..3 {
            pool.transaction(async |tx| tx.batch_execute("SELECT 1").await).await?;
        }
        using(pool.get().await?, async |_| {
            using(pool.get().await?, async |connection| connection.batch_execute("SELECT 1").await).await
        })
        .await
    });
    assert_eq!(fake.connections(), 2);
    assert_eq!(fake.statements().iter().filter(|text| *text == SET).count(), 2);
    assert_eq!(fake.statements()[0], SET, "before anything else");
}

#[test]
fn statements_after_connect_that_fail_or_hang_are_an_error_of_the_one_who_asks() {
    let (fake, _) = with_pool(options().after_connect("NONSENSE"), async |pool| {
        let failed = pool.get().await.map(drop).unwrap_err();
        assert_eq!(failed.code(), Some(&SqlState::SYNTAX_ERROR), "{failed}");
        assert_eq!(pool.status().connections, 0);
        Ok(())
    });
    assert_eq!(fake.connections(), 1);
    let hangs = options().connect_time(seconds(3)).after_connect("SELECT pg_sleep(3600)");
    with_pool(hangs, async |pool| {
        let begun = now();
        let failed = pool.get().await.map(drop).unwrap_err();
        assert!(matches!(failed, Error::Connect(_)), "{failed}");
        assert_eq!((now() - begun).as_secs(), 3);
        Ok(())
    });
}

#[test]
fn an_error_of_the_program_does_not_say_that_it_cannot_connect() {
    fn reads() -> Result<(), Error> {
        Err(std::io::Error::other("no certificate was found"))?
    }
    assert_eq!(reads().unwrap_err().to_string(), "no certificate was found");
    let back = std::io::Error::from(reads().unwrap_err());
    assert_eq!(back.to_string(), "no certificate was found");
}
