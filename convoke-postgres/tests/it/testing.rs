//! The server of the test kit, as its users see it.

use std::collections::BTreeMap;

use convoke::net::TcpStream;
use convoke::prelude::*;
use convoke::sim::Sim;
use convoke_postgres::testing::{FakeError, FakeServer};
use convoke_postgres::tokio_postgres::SimpleQueryMessage;
use convoke_postgres::tokio_postgres::error::SqlState;
use convoke_postgres::tokio_postgres::types::Type;
use convoke_postgres::{Error, Pool, PoolOptions};

use crate::harness::{options, seconds};

/// Names by their numbers; some have none.
type Names = BTreeMap<i64, Option<String>>;

const ADD: &str = "INSERT INTO names VALUES ($1, $2)";
const ALL: &str = "SELECT id, name, is_long FROM names";

fn names() -> FakeServer<Names> {
    FakeServer::new(Names::new())
        .statement(ADD, &[Type::INT8, Type::TEXT], &[], |call| {
            let (id, name) = (call.parameter::<i64>(0), call.parameter::<Option<String>>(1));
            if !call.try_lock(id.to_string()) {
                return Err(FakeError::new(SqlState::LOCK_NOT_AVAILABLE, "another transaction adds it"));
            }
            if call.tables().contains_key(&id) {
                return Err(FakeError::new(SqlState::UNIQUE_VIOLATION, "it is there"));
            }
            call.change(move |names| _ = names.insert(id, name.clone()));
            Ok(())
        })
        .statement(ALL, &[], &[("id", Type::INT8), ("name", Type::TEXT), ("is_long", Type::BOOL)], |call| {
            for (id, name) in call.tables() {
                call.row(&[id, name, &name.as_ref().is_some_and(|name| name.len() > 5)]);
            }
            Ok(())
        })
}

/// Runs a program with a pool of two connections against the server.
#[track_caller]
fn with_names<F>(program: impl Fn(Pool) -> F + Clone + Send + Sync + 'static) -> FakeServer<Names>
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let server = names();
    let mut sim = Sim::new(1);
    sim.host("database").daemon().run_with(server.clone(), FakeServer::serve);
    sim.host("program").run(move || {
        let program = program.clone();
        async move { options().connections(2).run(program).await.map_err(std::io::Error::from) }
    });
    sim.run();
    assert_eq!(server.open_transactions(), 0);
    server
}

#[test]
fn a_transaction_sees_its_own_changes_and_others_see_them_when_it_commits() {
    let server = with_names(async |pool| {
        using(pool.begin().await?, async |tx| {
            assert_eq!(tx.execute(ADD, &[&1_i64, &"one"]).await?, 1);
            assert_eq!(tx.query(ALL, &[]).await?.len(), 1);
            using(pool.get().await?, async |other| {
                assert!(other.query(ALL, &[]).await?.is_empty());
                Ok::<_, Error>(())
            })
            .await
        })
        .await?;
        using(pool.get().await?, async |other| {
            assert_eq!(other.query_one(ALL, &[]).await?.get::<_, String>("name"), "one");
            Ok(())
        })
        .await
    });
    server.assert_no_violation();
    assert_eq!(server.tables(|names| names.len()), 1);
}

#[test]
fn rows_have_all_kinds_of_columns_and_a_simple_query_has_them_as_text() {
    with_names(async |pool| {
        using(pool.get().await?, async |connection| {
            connection.execute(ADD, &[&-7_i64, &None::<String>]).await?;
            connection.execute(ADD, &[&8_i64, &"a long name"]).await?;
            let rows = connection.query(ALL, &[]).await?;
            let row = |index: usize| {
                (rows[index].get(0), rows[index].get(1), rows[index].get::<_, bool>("is_long"))
            };
            assert_eq!((row(0), row(1)), ((-7_i64, None, false), (8, Some("a long name"), true)));
            let messages = connection.simple_query(ALL).await?;
            let texts: Vec<_> = messages
                .iter()
                .filter_map(|message| match message {
                    SimpleQueryMessage::Row(row) => Some([row.get(0), row.get(1), row.get(2)]),
                    _ => None,
                })
                .collect();
            assert_eq!(texts, [[Some("-7"), None, Some("f")], [Some("8"), Some("a long name"), Some("t")]]);
            Ok(())
        })
        .await
    });
}

#[test]
fn an_error_of_a_statement_has_its_code_and_spoils_the_transaction() {
    with_names(async |pool| {
        using(pool.get().await?, async |connection| connection.execute(ADD, &[&1_i64, &"one"]).await).await?;
        let failed = pool.transaction(async |tx| {
            tx.execute(ADD, &[&2_i64, &"two"]).await?;
            let twice = tx.execute(ADD, &[&1_i64, &"again"]).await.unwrap_err();
            assert_eq!(twice.code(), Some(&SqlState::UNIQUE_VIOLATION));
            let ignored = tx.query(ALL, &[]).await.unwrap_err();
            assert_eq!(ignored.code(), Some(&SqlState::IN_FAILED_SQL_TRANSACTION));
            Ok::<_, Error>(())
        });
        assert!(matches!(failed.await, Err(Error::RolledBack)));
        using(pool.get().await?, async |connection| {
            assert_eq!(connection.query(ALL, &[]).await?.len(), 1);
            let unknown = connection.prepare("SELECT nonsense").await.unwrap_err();
            assert_eq!(unknown.code(), Some(&SqlState::SYNTAX_ERROR));
            Ok(())
        })
        .await
    });
}

#[test]
fn a_row_that_is_locked_is_free_when_its_transaction_has_ended() {
    with_names(async |pool| {
        using(pool.begin().await?, async |tx| {
            tx.execute(ADD, &[&1_i64, &"one"]).await?;
            using(pool.get().await?, async |other| {
                let held = other.execute(ADD, &[&1_i64, &"other"]).await.unwrap_err();
                assert_eq!(held.code(), Some(&SqlState::LOCK_NOT_AVAILABLE));
                Ok::<_, Error>(())
            })
            .await?;
            Err::<(), _>(Error::Closed)
        })
        .await
        .unwrap_err();
        using(pool.get().await?, async |other| other.execute(ADD, &[&1_i64, &"other"]).await.map(drop)).await
    });
}

#[test]
fn mistakes_of_clients_are_found() {
    let server = with_names(async |pool| {
        using(pool.get().await?, async |connection| connection.batch_execute("BEGIN; BEGIN; ROLLBACK").await)
            .await
    });
    assert_eq!(server.violations(), ["session 1 begins a transaction inside another"]);
    let asserts = std::panic::AssertUnwindSafe(|| server.assert_no_violation());
    assert!(std::panic::catch_unwind(asserts).is_err());
}

#[test]
fn a_client_that_speaks_nonsense_ends_its_connection_alone() {
    let server = names();
    let mut sim = Sim::new(1);
    sim.host("database").daemon().run_with(server.clone(), FakeServer::serve);
    sim.host("program").run(async || {
        for nonsense in [&b"\0\0\0\x02"[..], b"\0\0\0\x05x", b"\0\0\0\x08\0\x03\0\0P\0\0\0\x06ab"] {
            let stream = TcpStream::connect("database:5432").await?;
            stream.write_all(nonsense).await?;
            let mut answer = Vec::new();
            while stream.read_buf(&mut answer).await? > 0 {}
        }
        let mut config = convoke_postgres::tokio_postgres::Config::new();
        config.host("database").user("test");
        let asks = PoolOptions::new(config)
            .run(async |pool| pool.transaction(async |tx| tx.batch_execute("SELECT 1").await).await);
        timeout(seconds(5), asks).await?.map_err(std::io::Error::from)
    });
    sim.run();
    assert_eq!(server.connections(), 2, "those that came to the end of the handshake");
}

/// tokio-postgres counts prepared statements per process, and a longer name would be another run.
#[test]
fn the_same_seed_is_the_same_run_also_after_other_runs() {
    let set_up = |sim: &mut Sim| {
        sim.host("database").daemon().run_with(names(), FakeServer::serve);
        sim.host("program").run(async || {
            let run = options().run(async |pool| {
                for id in 0..30_i64 {
                    pool.transaction(async |tx| tx.execute(ADD, &[&id, &"name"]).await).await?;
                }
                Ok::<_, Error>(())
            });
            run.await.map_err(std::io::Error::from)
        });
    };
    for seed in 0..5 {
        convoke::sim::run_twice(seed, set_up);
    }
}
