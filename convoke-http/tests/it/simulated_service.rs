//! The example `simulated_service`: an application of axum in the simulator.

use convoke::sim::explore_seeds;

#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/simulated_service.rs"]
mod example;

#[test]
fn the_same_seed_writes_the_same_log_and_another_one_another() {
    let (once, again, other) = (example::run(7), example::run(7), example::run(8));
    assert_eq!(once.1.lines(), again.1.lines());
    assert_eq!(once.0.fingerprint(), again.0.fingerprint());
    assert_ne!(once.1.lines(), other.1.lines());
}

#[test]
fn no_acknowledged_order_is_lost_whatever_fails() {
    let faults = ["cut off", "database crashes", "web crashes", "asked to stop", " 504"];
    let logs = std::sync::Mutex::new(Vec::new());
    // `CONVOKE_ROUNDS=n` runs `n` seeds.
    let rounds =
        std::env::var("CONVOKE_ROUNDS").ok().map(|rounds| rounds.parse().expect("a number of seeds"));
    let rounds: u64 = rounds.unwrap_or(15);
    explore_seeds(0..rounds, |sim| logs.lock().unwrap().push(example::set_up(sim)));
    let lines: Vec<String> = logs.into_inner().unwrap().iter().flat_map(example::Log::lines).collect();
    for fault in faults {
        assert!(lines.iter().any(|line| line.contains(fault)), "no seed has seen {fault:?}");
    }
    let acknowledged = lines.iter().filter(|line| line.contains(" attempts, ")).count();
    assert_eq!(acknowledged as u64, rounds * 20);
}
