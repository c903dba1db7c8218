//! The fleet of the example, in the simulator: crashes, a stop, a partition, a database that restarts. `CONVOKE_ROUNDS=n` runs `n`
//! seeds.

#[path = "../../examples/fleet/simulated.rs"]
mod simulated;
#[path = "../../examples/fleet/worker.rs"]
mod worker;

use std::sync::Mutex;

use convoke::sim::explore_seeds;

#[test]
fn every_job_is_done_once_although_workers_and_the_database_crash() {
    let servers = Mutex::new(Vec::new());
    let rounds =
        std::env::var("CONVOKE_ROUNDS").ok().map(|rounds| rounds.parse().expect("a number of seeds"));
    explore_seeds(0..rounds.unwrap_or(4), |sim| servers.lock().unwrap().push(simulated::set_up(sim)));
    for fake in servers.into_inner().unwrap() {
        println!("{}", simulated::assert_done(&fake));
    }
}
