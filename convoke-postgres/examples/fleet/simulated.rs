//! Workers on simulated hosts: one crashes and comes back, one is stopped, the network is cut, the database restarts.

use std::io;
use std::time::Duration;

use convoke::sim::Sim;
use convoke::sync::watch;
use convoke_postgres::PoolOptions;
use convoke_postgres::tokio_postgres::Config;

use super::worker::work;
use crate::fake::Fake;

/// Jobs in the table.
const JOBS: i64 = 300;

/// The program of a worker's host.
async fn program(name: String) -> io::Result<()> {
    let mut config = Config::new();
    config.host("database").user("fleet");
    let options = PoolOptions::new(config).connections(2).connect_time(Duration::from_secs(2));
    options.run(async |pool| work(&pool, &name, 2, watch::channel(0).0).await).await?;
    Ok(())
}

/// Prepares a simulation with three workers, and trouble. Returns the server.
pub(crate) fn set_up(sim: &mut Sim) -> Fake {
    let fake = Fake::default();
    fake.tables(|tables| tables.jobs = (1..=JOBS).map(|id| (id, Default::default())).collect());
    sim.host("database").daemon().run_with(fake.clone(), Fake::serve);
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
pub(crate) fn assert_done(fake: &Fake) -> String {
    fake.assert_no_violation();
    fake.tables(|tables| {
        let mut jobs: Vec<_> = tables.effects.iter().map(|effect| effect.job).collect();
        jobs.sort_unstable();
        assert_eq!(jobs, (1..=JOBS).collect::<Vec<_>>(), "each job has one effect");
        assert_eq!(tables.jobs_left(), 0);
        let by = |name: &str| tables.effects.iter().filter(|effect| effect.worker == name).count();
        format!(
            "{JOBS} jobs, {} effects: {} by one, which crashed; {} by two, which was stopped; {} by three",
            tables.effects.len(),
            by("one"),
            by("two"),
            by("three")
        )
    })
}
