//! Messages of failed runs: the host, the problem, and the seed that repeats it.

use std::io;
use std::time::Duration;

use convoke::net::{TcpListener, TcpStream, UnixStream};
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::sim::{Sim, SimFailure};
use convoke::sync::Mutex;

const SECOND: Duration = Duration::from_secs(1);

async fn accepts_one() -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:7").await?;
    let (stream, _) = listener.accept().await?;
    stream.read_exact(&mut [0; 5]).await
}

/// The line at which the server waits for a connection.
const ACCEPTS: u32 = line!() - 5;

fn failure(sim: Sim) -> SimFailure {
    sim.try_run().expect_err("it fails")
}

#[test]
fn an_error_names_the_host_and_the_seed() {
    let mut sim = Sim::new(77);
    sim.host("server").run(accepts_one);
    sim.host("client").run(|| async {
        sleep(SECOND).await;
        Err::<(), _>("out of ideas")
    });
    let panic = Panic::catch(|| sim.run()).unwrap_err();
    let said = panic.message();
    assert!(
        said.starts_with("after 1s of simulated time: host `client` returned an error: \"out of ideas\"\n"),
        "{said}"
    );
    assert!(said.contains("the tasks at that moment:\n`server` ("), "{said}");
    assert!(said.contains("\nwhat happened:\n    0.000000s  server starts\n"), "{said}");
    assert!(said.ends_with("this was seed 77; `Sim::new(77)` runs it again"), "{said}");
}

#[test]
fn a_panic_names_the_host() {
    let mut sim = Sim::new(1);
    sim.host("client").run(|| async {
        checkpoint().await;
        assert!(convoke::env::current::stop_requested(), "on purpose");
    });
    assert!(failure(sim).what().starts_with("host `client` panicked: "));
}

#[test]
fn a_run_that_fails_unwinds_what_is_left() {
    let mut sim = Sim::new(1);
    let probe = sim.probe();
    let kept = probe.clone();
    sim.host("server").run(move || {
        let probe = probe.clone();
        async move {
            let _held = probe.must_drop("server's connection");
            accepts_one().await
        }
    });
    sim.host("client").run(|| async { Err::<(), _>("no") });
    failure(sim);
    assert_eq!(kept.complaints(), Vec::<String>::new());
}

#[test]
fn a_deadlock_prints_the_tasks_and_where_they_wait() {
    let mut sim = Sim::new(5);
    sim.host("philosophers").run(|| async {
        let (one, other) = (Mutex::new(()), Mutex::new(()));
        let dine = async |first: &Mutex<()>, second: &Mutex<()>| {
            let _first = first.lock().await;
            sleep(SECOND).await;
            let _second = second.lock().await;
        };
        join((dine(&one, &other), dine(&other, &one))).await;
    });
    sim.host("server").run(accepts_one);
    let failure = failure(sim);
    assert_eq!(failure.what(), "deadlock: all tasks wait, and no timer, packet or action is pending");
    assert_eq!(failure.at(), SECOND);
    // The locations where the program was given to the host, and where it waits.
    let lines: Vec<&str> = failure.tasks().lines().collect();
    assert!(lines[0].starts_with("`philosophers` (convoke-sim/tests/it/failures.rs:"), "{failure}");
    assert!(lines[0].contains(" waits at convoke-sim/tests/it/failures.rs:"), "{failure}");
    assert!(lines[1].starts_with("`server` (convoke-sim/tests/it/failures.rs:"), "{failure}");
    assert!(
        lines[1].contains(&format!(" waits at convoke-sim/tests/it/failures.rs:{ACCEPTS}:")),
        "{failure}"
    );
}

#[test]
fn waiting_for_a_partition_to_heal_is_a_deadlock_if_nobody_heals_it() {
    let mut sim = Sim::new(5);
    sim.host("server").daemon().run(accepts_one);
    sim.host("client").run(|| async {
        let stream = TcpStream::connect("server:7").await?;
        // The server receives nothing, and the client waits for an answer.
        stream.read_exact(&mut [0]).await
    });
    sim.at(Duration::from_millis(500), |sim| sim.partition("server", "client"));
    let failure = failure(sim);
    assert!(failure.what().starts_with("deadlock"), "{failure}");
}

#[test]
fn programs_that_do_not_end_reach_a_limit() {
    async fn ticks() {
        loop {
            sleep(SECOND).await;
        }
    }
    async fn spins() {
        loop {
            checkpoint().await;
        }
    }
    let mut sim = Sim::new(5);
    sim.time_limit(60 * SECOND);
    sim.host("clock").run(ticks);
    assert_eq!(failure(sim).what(), "it still runs after 60s");
    let mut sim = Sim::new(5);
    sim.step_limit(1000);
    sim.host("mill").run(spins);
    assert_eq!(failure(sim).what(), "it still runs after 1000 steps");
}

#[test]
fn a_daemon_that_does_not_stop_is_named() {
    let mut sim = Sim::new(5);
    sim.host("deaf").daemon().run(|| async { shield(async { never::<()>().await }).await });
    sim.host("client").run(|| async {});
    let failure = failure(sim);
    assert!(failure.what().starts_with("deadlock"), "{failure}");
    assert!(
        failure.tasks().starts_with("`deaf` (") && failure.tasks().contains("was asked to stop"),
        "{failure}"
    );
}

#[test]
fn sockets_that_stay_open_and_broken_promises_are_told() {
    let mut sim = Sim::new(5);
    let probe = sim.probe();
    let kept = std::sync::Arc::new(std::sync::Mutex::new(None));
    sim.host("hoarder").run(move || {
        let (probe, kept) = (probe.clone(), kept.clone());
        async move {
            probe.acquired("lock file");
            *kept.lock().unwrap() = Some(UnixStream::pair()?);
            io::Result::Ok(())
        }
    });
    let what = failure(sim).what().to_owned();
    assert!(what.starts_with("`lock file` was acquired 1 time and cleaned up 0 times; "), "{what}");
    assert!(what.contains("host `hoarder` left a stream at (unnamed) open"), "{what}");
}

#[test]
fn what_is_done_at_a_time_may_fail_too() {
    let mut sim = Sim::new(5);
    sim.host("client").run(|| async { sleep(SECOND).await });
    sim.at(SECOND / 2, |sim| sim.crash("server"));
    let what = failure(sim).what().to_owned();
    assert_eq!(what, "the action at 500ms panicked: there is no host `server`; the hosts are: client");
}
