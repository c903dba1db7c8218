//! Workers on simulated hosts: one crashes and comes back, one is stopped, the network is cut, the database restarts.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use convoke::sim::Sim;
use convoke::sync::watch;
use convoke_postgres::PoolOptions;
use convoke_postgres::testing::FakeServer;
use convoke_postgres::tokio_postgres::Config;
use convoke_postgres::tokio_postgres::types::Type;

use super::worker::{COUNT, DONE, EFFECT, TAKE, work};

/// Jobs in the table.
const JOBS: i64 = 300;

/// The tables of the database.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    /// Jobs that are not done.
    open: Vec<i64>,
    /// Workers that have done a job, by the jobs.
    done: BTreeMap<i64, String>,
    /// Effects of jobs: the job, and the worker.
    effects: Vec<(i64, String)>,
}

/// Creates the database, with the statements of a worker.
fn database() -> FakeServer<Tables> {
    let tables = Tables { open: (1..=JOBS).collect(), done: BTreeMap::new(), effects: Vec::new() };
    let left = |tables: &Tables| i64::try_from(tables.open.len()).unwrap();
    FakeServer::new(tables)
        .statement(TAKE, &[], &[("id", Type::INT8)], |call| {
            if !call.is_in_transaction() {
                call.violation("locks a row without a transaction");
            }
            let free = call.tables().open.iter().find(|id| call.try_lock(format!("job {id}")));
            if let Some(id) = free {
                call.row(&[id]);
            }
            Ok(())
        })
        .statement(COUNT, &[], &[("count", Type::INT8)], move |call| {
            call.row(&[&left(call.tables())]);
            Ok(())
        })
        .statement(DONE, &[Type::INT8, Type::TEXT], &[], |call| {
            let (job, worker) = (call.parameter::<i64>(0), call.parameter::<String>(1));
            call.change(move |tables| {
                tables.open.retain(|open| *open != job);
                tables.done.insert(job, worker.clone());
            });
            Ok(())
        })
        .statement(EFFECT, &[Type::INT8, Type::TEXT], &[], |call| {
            let (job, worker) = (call.parameter::<i64>(0), call.parameter::<String>(1));
            call.change(move |tables| tables.effects.push((job, worker.clone())));
            Ok(())
        })
}

/// The program of a worker's host.
async fn program(name: String) -> io::Result<()> {
    let mut config = Config::new();
    config.host("database").user("fleet");
    let options = PoolOptions::new(config).connections(2).connect_time(Duration::from_secs(2));
    options.run(async |pool| work(&pool, &name, 2, watch::channel(0).0).await).await?;
    Ok(())
}

/// Prepares a simulation with three workers, and trouble. Returns the server.
pub(crate) fn set_up(sim: &mut Sim) -> FakeServer<Tables> {
    let fake = database();
    sim.host("database").daemon().run_with(fake.clone(), FakeServer::serve);
    for name in ["one", "two", "three"] {
        sim.host(name).run_with(name.to_owned(), program);
    }
    let at = |milliseconds| Duration::from_millis(milliseconds);
    sim.at(at(500), |sim| sim.crash("one"));
    sim.at(at(900), |sim| sim.stop("two"));
    sim.at(at(1200), |sim| sim.partition("three", "database"));
    sim.at(at(1700), |sim| sim.heal("three", "database"));
    sim.at(at(2000), |sim| sim.restart("one"));
    sim.at(at(2500), |sim| sim.crash("database"));
    sim.at(at(3000), |sim| sim.restart("database"));
    fake
}

/// Asserts that every job was done, exactly once. Returns a sentence that says so.
pub(crate) fn assert_done(fake: &FakeServer<Tables>) -> String {
    fake.assert_no_violation();
    fake.tables(|tables| {
        let mut jobs: Vec<_> = tables.effects.iter().map(|(job, _)| *job).collect();
        jobs.sort_unstable();
        assert_eq!(jobs, (1..=JOBS).collect::<Vec<_>>(), "each job has one effect");
        assert!(tables.open.is_empty(), "{:?}", tables.open);
        for (job, worker) in &tables.effects {
            assert_eq!(tables.done.get(job), Some(worker), "the effect is of the worker that did the job");
        }
        let by = |name: &str| tables.effects.iter().filter(|(_, worker)| worker == name).count();
        format!(
            "{JOBS} jobs, {} effects: {} by one, which crashed; {} by two, which was stopped; {} by three",
            tables.effects.len(),
            by("one"),
            by("two"),
            by("three")
        )
    })
}
