//! A fleet of workers over PostgreSQL: jobs in a table, done exactly once, although workers are killed.
//!
//! ```text
//! cargo run --release -p convoke-postgres --features testing --example fleet                          # in the simulator
//! DATABASE_URL='host=… user=…' cargo run … --example fleet -- set-up 1000          # makes the tables, with 1000 jobs
//! DATABASE_URL='host=… user=…' cargo run … --example fleet -- work one             # a worker; start as many as you like
//! ```

mod on_a_server;
mod simulated;
mod worker;

use convoke::sim::Sim;

fn main() -> Result<(), convoke_postgres::Error> {
    if std::env::var_os("DATABASE_URL").is_some() {
        return on_a_server::main();
    }
    let mut sim = Sim::new(1);
    let fake = simulated::set_up(&mut sim);
    let report = sim.run();
    println!("{}; {:.1} s of simulated time", simulated::assert_done(&fake), report.elapsed().as_secs_f64());
    Ok(())
}
