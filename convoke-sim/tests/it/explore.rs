//! Explorations find planted bugs, and say how to repeat the run.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use convoke::Panic;
use convoke::io::read_exact;
use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::sim::{
    Ending, Fault, Sim, explore_faults, explore_host_stops, explore_seeds, replay_fault, replay_host_stop,
};
use convoke::testing::Probe;

const SECOND: Duration = Duration::from_secs(1);

fn said(explore: impl FnOnce()) -> String {
    Panic::catch(explore).expect_err("it finds something").message().to_owned()
}

/// Answers each connection once.
async fn server() -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:7").await?;
    scope(async |s| {
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            s.spawn(async move {
                let mut word = [0; 5];
                if stream.read_exact(&mut word).await.is_ok() {
                    let _ = stream.write_all(&word).await;
                }
            });
        }
    })
    .await
}

/// Asks until it gets an answer, and gives up after a time limit.
async fn client(probe: Probe) -> io::Result<()> {
    sleep(SECOND).await;
    let _held = probe.must_drop("the client's state");
    for _ in 0..3 {
        probe.acquired("lease");
        let answer = ensure(
            async |_| probe.cleaned_up("lease"),
            timeout(5 * SECOND, async {
                let stream = TcpStream::connect("server:7").await?;
                stream.write_all(b"hello").await?;
                stream.read_exact(&mut [0; 5]).await
            }),
        );
        if let Ok(Ok(())) = answer.await {
            return Ok(());
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

fn sound(sim: &mut Sim) {
    let probe = sim.probe();
    sim.host("server").daemon().run(server);
    sim.host("client").run(move || client(probe.clone()));
}

#[test]
fn a_sound_program_survives_a_stop_at_every_step() {
    let exploration = explore_host_stops(1, "client", sound);
    let stopped = exploration.ended(|ending| *ending == Ending::Stopped);
    assert!(stopped > 5, "{exploration}");
    assert_eq!(stopped + exploration.ended(|ending| *ending == Ending::Completed), exploration.runs().len());
    let table = exploration.to_string();
    assert!(table.starts_with("   at  what        steps  client\n    -  -"), "{table}");
    assert!(table.contains("a stop"), "{table}");
}

#[test]
#[cfg_attr(miri, ignore = "runs a hundred programs")]
fn a_sound_program_survives_every_fault_at_every_operation() {
    for host in ["client", "server"] {
        let exploration = explore_faults(1, host, &Fault::ALL, sound);
        assert!(exploration.runs().len() >= 20, "{exploration}");
        let again = exploration.runs().iter().filter(|run| run.what() == "a crash");
        assert!(again.clone().count() >= 5);
        for run in again {
            assert_eq!(run.report().host(host).unwrap().starts(), 2, "{exploration}");
        }
    }
}

/// A program whose clean-up does not run if it is stopped in between.
fn forgetful(sim: &mut Sim) {
    let probe = sim.probe();
    sim.host("client").run(move || {
        let probe = probe.clone();
        async move {
            checkpoint().await;
            probe.acquired("lock file");
            checkpoint().await;
            probe.cleaned_up("lock file");
        }
    });
}

#[test]
fn clean_up_that_a_stop_skips_is_found_and_replayed() {
    let said = said(|| drop(explore_host_stops(9, "client", forgetful)));
    assert!(said.starts_with("with a stop of `client` after step 2: "), "{said}");
    assert!(said.contains("`lock file` was acquired 1 time and cleaned up 0 times"), "{said}");
    let replay =
        "this was seed 9; `CONVOKE_POINT=2` or `replay_host_stop(9, \"client\", 2, …)` runs it again";
    assert!(said.ends_with(replay), "{said}");
    Panic::catch(|| replay_host_stop(9, "client", 2, forgetful)).unwrap_err();
    replay_host_stop(9, "client", 1, forgetful);
}

/// A program that assumes that a connected stream can be written to.
fn trusting(sim: &mut Sim) {
    sim.host("server").daemon().run(server);
    sim.host("client").run(|| async {
        sleep(SECOND).await;
        let Ok(stream) = TcpStream::connect("server:7").await else { return };
        stream.write_all(b"hello").await.expect("who would not want to hear that?");
    });
}

#[test]
fn an_error_that_is_not_handled_is_found_and_replayed() {
    let said = said(|| drop(explore_faults(3, "client", &[Fault::Reset], trusting)));
    assert!(said.starts_with("with a reset at operation 2 of `client`: "), "{said}");
    assert!(said.contains("host `client` panicked: "), "{said}");
    let replay = "`CONVOKE_POINT=2` or `replay_fault(3, \"client\", 2, Fault::Reset, …)` runs it again";
    assert!(said.ends_with(replay), "{said}");
    Panic::catch(|| replay_fault(3, "client", 2, Fault::Reset, trusting)).unwrap_err();
    replay_fault(3, "client", 0, Fault::Reset, trusting);
}

/// A program that waits for an answer without a time limit.
fn patient(sim: &mut Sim) {
    sim.host("server").daemon().run(server);
    sim.host("client").run(|| async {
        sleep(SECOND).await;
        let stream = TcpStream::connect("server:7").await?;
        stream.write_all(b"hello").await?;
        stream.read_exact(&mut [0; 5]).await
    });
}

#[test]
fn a_program_that_waits_for_a_crashed_peer_for_ever_is_found() {
    let said = said(|| drop(explore_faults(3, "server", &[Fault::Crash], patient)));
    assert!(said.contains("deadlock: all tasks wait"), "{said}");
    assert!(said.contains("`client` ("), "{said}");
    assert!(said.contains("runs it again"), "{said}");
}

/// Two tasks that each read a counter and then write it plus one.
fn racy(sim: &mut Sim) {
    let counter = Arc::new(AtomicU32::new(0));
    let increment = async |counter: &AtomicU32| {
        let seen = counter.load(Ordering::Relaxed);
        checkpoint().await;
        counter.store(seen + 1, Ordering::Relaxed);
    };
    sim.host("counter").run(move || {
        counter.store(0, Ordering::Relaxed);
        let (one, other, all) = (counter.clone(), counter.clone(), counter.clone());
        async move {
            scope(async |s| {
                s.spawn(async move { increment(&one).await });
                s.spawn(async move { increment(&other).await });
            })
            .await;
            let sum = all.load(Ordering::Relaxed);
            if sum == 2 { Ok(()) } else { Err(format!("one and one is {sum}")) }
        }
    });
}

#[test]
#[cfg_attr(miri, ignore = "runs a hundred programs")]
fn a_race_is_found_by_some_seed_and_that_seed_finds_it_again() {
    let said = said(|| drop(explore_seeds(0..50, racy)));
    assert!(said.contains("host `counter` returned an error: \"one and one is 1\""), "{said}");
    let (_, seed) = said.split_once("CONVOKE_SEED=").expect("it says how");
    let seed: u64 = seed.split('`').next().unwrap().parse().unwrap();
    let mut sim = Sim::new(seed);
    racy(&mut sim);
    assert_eq!(sim.try_run().unwrap_err().seed(), seed);
    let fine = (0..50).filter(|seed| {
        let mut sim = Sim::new(*seed);
        racy(&mut sim);
        sim.try_run().is_ok()
    });
    assert!(fine.count() > 5, "it is not found by all");
}

#[test]
fn a_point_that_a_run_does_not_reach_is_told() {
    let stop = said(|| drop(replay_host_stop(9, "client", 1000, forgetful)));
    assert!(stop.contains("before step 1000: the program is not deterministic"), "{stop}");
    let fault = said(|| drop(replay_fault(9, "client", 1000, Fault::Error, forgetful)));
    assert!(fault.contains("before operation 1000: the program is not deterministic"), "{fault}");
}

#[test]
fn set_up_may_vary_by_the_seed() {
    let drawn = Arc::new(Mutex::new(Vec::new()));
    let kept = drawn.clone();
    explore_seeds(0..10, move |sim| {
        drawn.lock().unwrap().push(sim.random(1000));
        sim.host("idle").run(|| async {});
    });
    let mut drawn = kept.lock().unwrap().clone();
    drawn.sort_unstable();
    drawn.dedup();
    assert!(drawn.len() > 5);
}

/// Asks twice if there is something to read, and ends at once.
async fn hasty() -> io::Result<()> {
    sleep(SECOND).await;
    let mut stream = TcpStream::connect("server:7").await?;
    let mut byte = [0];
    let mut read = pin!(read_exact(&mut stream, &mut byte));
    for _ in 0..2 {
        let polled = poll_fn(|cx| Poll::Ready(read.as_mut().poll(cx))).await;
        if let Poll::Ready(result) = polled {
            return result;
        }
    }
    Ok(())
}

/// Regression: a read that an injected error struck while it waited left its waker in the closed connection, and a program
/// that ended at that instant was said not to have freed the memory of its task.
#[test]
fn a_program_that_ends_as_a_fault_strikes_has_freed_its_memory() {
    let exploration = explore_faults(1, "client", &Fault::ALL, |sim| {
        sim.host("server").daemon().run(server);
        sim.host("client").run(hasty);
    });
    let failed = exploration.ended(|ending| matches!(ending, Ending::Failed(_)));
    assert!(failed >= 6, "{exploration}");
}
