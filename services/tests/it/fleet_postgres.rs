//! The example `fleet` as processes: one is killed, one is asked to end, in the middle of the load.

use std::process::Command;

use convoke::Runtime;
use convoke_postgres::{Error, PoolOptions};
use convoke_services::service;

use crate::workers::{Worker, wait_until};

const JOBS: i64 = 1500;

/// Asks the database one question.
pub(crate) fn ask(database: &str, question: &'static str) -> i64 {
    let config = database.parse().unwrap();
    let runtime = Runtime::builder().contexts(1).pool_threads(1).build().unwrap();
    let asks = PoolOptions::new(config).run(async move |pool| {
        pool.transaction(async |tx| Ok::<i64, Error>(tx.query_one(question, &[]).await?.get(0))).await
    });
    runtime.block_on(asks).unwrap().unwrap()
}

/// Makes a database of its own for a test.
pub(crate) fn database_named(name: &'static str) -> String {
    let server = service("CONVOKE_TEST_POSTGRES");
    let config = server.parse().unwrap();
    let runtime = Runtime::builder().contexts(1).pool_threads(1).build().unwrap();
    let makes = PoolOptions::new(config).run(async move |pool| {
        convoke::using(pool.get().await?, async |connection| {
            connection.batch_execute(&format!("DROP DATABASE IF EXISTS {name}")).await?;
            connection.batch_execute(&format!("CREATE DATABASE {name}")).await
        })
        .await
    });
    runtime.block_on(makes).unwrap().unwrap();
    server.replace("dbname=postgres", &format!("dbname={name}"))
}

#[test]
fn a_fleet_loses_no_job_when_one_worker_is_killed_and_another_asked_to_end() {
    let database = database_named("fleet");
    let fleet = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fleet"));
        command.args(arguments).env("DATABASE_URL", &database);
        command
    };
    assert!(fleet(&["set-up", &JOBS.to_string()]).status().unwrap().success());
    let [killed, terminated, left] =
        ["killed", "terminated", "left"].map(|name| Worker::start(&mut fleet(&["work", name])));
    let done = || ask(&database, "SELECT count(*) FROM effects");
    wait_until("a fifth of the jobs", || done() > JOBS / 5);
    killed.kill();
    wait_until("two fifths of the jobs", || done() > 2 * JOBS / 5);
    terminated.terminate();
    let (status, farewell) = terminated.wait();
    assert_eq!(status.code(), Some(143), "{farewell}");
    assert!(farewell.contains("terminated: ") && farewell.contains("stopped"), "{farewell}");
    let (status, farewell) = left.wait();
    assert!(status.success(), "{farewell}");
    assert_eq!(done(), JOBS);
    assert_eq!(ask(&database, "SELECT count(DISTINCT job) FROM effects"), JOBS, "each exactly once");
    assert_eq!(ask(&database, "SELECT count(*) FROM jobs WHERE done_by IS NULL"), 0);
    let by = |question| ask(&database, question);
    println!(
        "{JOBS} jobs, {} effects: {} by the worker that was killed, {} by the one that was asked to end, {} by the third",
        done(),
        by("SELECT count(*) FROM effects WHERE worker = 'killed'"),
        by("SELECT count(*) FROM effects WHERE worker = 'terminated'"),
        by("SELECT count(*) FROM effects WHERE worker = 'left'")
    );
    // No transaction and no connection is left behind.
    wait_until("the end of all connections", || {
        ask(
            &database,
            "SELECT count(*) FROM pg_stat_activity WHERE datname = 'fleet' AND pid <> pg_backend_pid()",
        ) == 0
    });
}
