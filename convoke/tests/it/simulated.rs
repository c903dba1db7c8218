//! The example `three_hosts`, with many seeds, with a stop at each step of a host and a fault at each of its
//! operations.
#![cfg(feature = "sim")]

#[allow(dead_code, unreachable_pub, reason = "the program around what is tested")]
#[path = "../../examples/three_hosts.rs"]
mod three_hosts;

use convoke::sim::{Fault, Sim, SimReport, explore_seeds, replay_fault, replay_host_stop};
use three_hosts::set_up;

fn three(sim: &mut Sim) {
    set_up(sim);
}

#[test]
fn nobody_reads_anything_old_whatever_the_seed() {
    let reports = explore_seeds(0..if cfg!(miri) { 1 } else { 40 }, three);
    assert!(reports.iter().all(|report| report.hosts().len() == 3));
}

#[test]
fn a_run_is_the_same_when_it_is_run_again() {
    let seeds = 3..if cfg!(miri) { 4 } else { 5 };
    assert_eq!(explore_seeds(seeds.clone(), three), explore_seeds(seeds, three));
}

/// Returns some points, evenly spread: all would be thousands of runs.
fn some(all: usize) -> impl Iterator<Item = usize> {
    (0..all).step_by(if cfg!(miri) { all } else { all / 10 }.max(1))
}

fn undisturbed() -> SimReport {
    explore_seeds([6], three).remove(0)
}

#[test]
fn a_host_that_is_asked_to_stop_at_any_point_leaves_nothing_behind() {
    let report = undisturbed();
    for point in some(report.host("ada").unwrap().ended_after()) {
        // The other two are a majority.
        replay_host_stop(6, "ada", point, three);
    }
}

#[test]
fn a_fault_at_any_operation_is_survived() {
    let report = undisturbed();
    for operation in some(report.host("bob").unwrap().operations()) {
        for fault in Fault::ALL {
            replay_fault(6, "bob", operation, fault, three);
        }
    }
}

/// Tests themselves can run on a simulated host.
#[convoke::test(seeds = 5)]
async fn a_test_may_be_a_host() -> std::io::Result<()> {
    use convoke::net::{TcpListener, TcpStream};
    use convoke::prelude::*;

    let start = convoke::time::now();
    let listener = TcpListener::bind("test:7").await?;
    let (client, (server, _)) = try_join((TcpStream::connect("test:7"), listener.accept())).await?;
    sleep(std::time::Duration::from_secs(3600)).await;
    client.write_all(b"hello").await?;
    server.read_exact(&mut [0; 5]).await?;
    assert_eq!(convoke::time::now() - start, std::time::Duration::from_secs(3600));
    Ok(())
}
