//! A program with a pool on one simulated host, the server on another.

use std::future::Future;
use std::time::Duration;

use convoke::sim::{Sim, SimReport};
use convoke_postgres::tokio_postgres::Config;
use convoke_postgres::{Error, Pool, PoolOptions};

use crate::fake::{Fake, numbers};

/// The options of a pool of one connection to the host `database`.
pub(crate) fn options() -> PoolOptions {
    let mut config = Config::new();
    config.host("database").user("test").dbname("test");
    PoolOptions::new(config).connections(1)
}

/// Adds the server, and a program with a pool, to a simulation.
pub(crate) fn hosts<F, P>(sim: &mut Sim, fake: &Fake, options: PoolOptions, program: F)
where
    F: Fn(Pool) -> P + Clone + Send + Sync + 'static,
    P: Future<Output = Result<(), Error>> + Send + 'static,
{
    sim.host("database").daemon().run_with(fake.clone(), Fake::serve);
    sim.host("program").run(move || {
        let (options, program) = (options.clone(), program.clone());
        async move { options.run(program).await.map_err(std::io::Error::from) }
    });
}

/// Runs a program with a pool against a server of its own, and checks that it leaves nothing open there.
#[track_caller]
pub(crate) fn with_pool<F, P>(options: PoolOptions, program: F) -> (Fake, SimReport)
where
    F: Fn(Pool) -> P + Clone + Send + Sync + 'static,
    P: Future<Output = Result<(), Error>> + Send + 'static,
{
    let fake = numbers();
    let mut sim = Sim::new(1);
    hosts(&mut sim, &fake, options, program);
    let report = sim.run();
    fake.assert_no_violation();
    assert_eq!(fake.open_transactions(), 0, "a transaction is left open");
    (fake, report)
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn milliseconds(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}
