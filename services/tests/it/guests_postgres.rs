//! Pools of other crates, as guests, against PostgreSQL.

use std::time::Duration;

use convoke::driver::with_services;
use convoke::prelude::*;
use convoke_services::service;
use convoke_tokio::{GuestRuntime, tokio_guest};
use sqlx::Row;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

/// The options of sqlx for the server of the tests.
fn options() -> PgConnectOptions {
    service("CONVOKE_TEST_POSTGRES").split_whitespace().fold(PgConnectOptions::new(), |options, setting| {
        match setting.split_once('=').unwrap() {
            ("host", host) => options.host(host),
            ("port", port) => options.port(port.parse().unwrap()),
            ("user", user) => options.username(user),
            ("dbname", name) => options.database(name),
            other => panic!("{other:?}"),
        }
    })
}

#[convoke::test]
async fn sqlx_runs_as_a_guest_in_children_of_a_scope() -> Result<(), sqlx::Error> {
    let pool = tokio_guest(|| PgPoolOptions::new().max_connections(3).connect_with(options())).await?;
    let used = pool.clone();
    let sum = scope(async |s| {
        let children: Vec<_> = (0..9_i32)
            .map(|number| {
                let pool = used.clone();
                s.spawn_future(tokio_guest(move || async move {
                    let row = sqlx::query("SELECT $1::int * 2").bind(number).fetch_one(&pool).await?;
                    row.try_get::<i32, _>(0)
                }))
            })
            .collect();
        let mut sum = 0;
        for child in children {
            sum += child.await?;
        }
        Ok::<_, sqlx::Error>(sum)
    })
    .await?;
    assert_eq!(sum, 72);
    tokio_guest(move || async move { pool.close().await }).await;
    Ok(())
}

/// The guide, *Adopt it one handler at a time*, shows these lines without compiling them.
#[convoke::test]
async fn the_query_of_the_guide_runs() -> Result<(), sqlx::Error> {
    let page = include_str!("../../../convoke/src/guide/adopting.rs");
    for line in [
        r#"let query = || async { sqlx::query("SELECT 1").fetch_all(&pool).await };"#,
        "let rows = tokio_guest(query).await?;",
    ] {
        assert!(page.contains(line), "the guide shows other lines");
        assert!(include_str!("guests_postgres.rs").matches(line).count() > 1);
    }
    let pool = tokio_guest(|| PgPoolOptions::new().max_connections(1).connect_with(options())).await?;
    let query = || async { sqlx::query("SELECT 1").fetch_all(&pool).await };
    let rows = tokio_guest(query).await?;
    assert_eq!(rows.len(), 1);
    tokio_guest(|| async { pool.close().await }).await;
    Ok(())
}

/// Makes connections for bb8.
struct Manager;

impl bb8::ManageConnection for Manager {
    type Connection = sqlx::PgConnection;
    type Error = sqlx::Error;

    async fn connect(&self) -> Result<sqlx::PgConnection, sqlx::Error> {
        sqlx::ConnectOptions::connect(&options()).await
    }

    async fn is_valid(&self, connection: &mut sqlx::PgConnection) -> Result<(), sqlx::Error> {
        sqlx::Connection::ping(connection).await
    }

    fn has_broken(&self, _: &mut sqlx::PgConnection) -> bool {
        false
    }
}

#[convoke::test]
async fn bb8_runs_as_a_guest() {
    // bb8 starts a task that never ends: the runtime waits for it when it closes, for that time, and reports it.
    let runtime = GuestRuntime::with_grace(Duration::from_millis(100)).unwrap();
    with_services(|services| services.make_service(|_| runtime).map(drop)).unwrap().unwrap();
    let answer = tokio_guest(|| async {
        let pool = bb8::Pool::builder().max_size(2).build(Manager).await.unwrap();
        let mut connection = pool.get().await.unwrap();
        sqlx::query("SELECT 42").fetch_one(&mut *connection).await.unwrap().get::<i32, _>(0)
    });
    assert_eq!(answer.await, 42);
}
