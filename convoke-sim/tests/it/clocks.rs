//! Clocks that jump while their host runs.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use convoke::net::UdpSocket;
use convoke::prelude::*;
use convoke::sim::{Sim, note, run_twice};
use convoke::time::{now, time_of_day};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_clock_that_jumps_ahead_ends_sleeps_and_timeouts_early() {
    let mut sim = Sim::new(1);
    sim.host("jumps").run(|| async {
        let (start, date) = (now(), time_of_day());
        sleep(10 * SECOND).await;
        assert_eq!(now() - start, 11 * SECOND, "the sleep was due a second ago");
        assert_eq!(time_of_day().duration_since(date).unwrap(), 11 * SECOND);
        let waits = timeout(10 * SECOND, async { convoke::task::forever().await }).await;
        assert!(waits.is_err(), "the timeout is up");
        note("has waited");
    });
    sim.host("other").run(|| async {
        let start = now();
        sleep(30 * SECOND).await;
        assert_eq!(now() - start, 30 * SECOND, "the other clocks do not jump");
    });
    sim.at(SECOND, |sim| sim.jump_clock("jumps", 10 * SECOND));
    let report = sim.run();
    let waited = report.trace().iter().find(|line| line.what() == "jumps: has waited").unwrap();
    assert_eq!(waited.at(), 11 * SECOND);
    let jump =
        report.trace().iter().find(|line| line.what() == "jumps: its clock jumps ahead by 10s").unwrap();
    assert!(jump.is_break());
    assert_eq!(jump.at(), SECOND);
}

#[test]
fn a_jump_while_a_task_can_run_takes_effect_at_once() {
    let mut sim = Sim::new(1);
    sim.host("busy").run(|| async {
        let start = now();
        while now() - start < 3600 * SECOND {
            sleep(Duration::from_millis(1)).await;
        }
    });
    sim.at(SECOND, |sim| sim.jump_clock("busy", 3600 * SECOND));
    let report = sim.run();
    assert!(report.elapsed() <= SECOND + Duration::from_millis(1), "{report}");
}

#[test]
fn a_shorter_jump_brings_a_timer_closer() {
    let mut sim = Sim::new(1);
    sim.host("sleeper").run(|| async { sleep(10 * SECOND).await });
    sim.at(SECOND, |sim| sim.jump_clock("sleeper", 4 * SECOND));
    assert_eq!(sim.run().elapsed(), 6 * SECOND);
}

#[test]
fn the_time_of_day_goes_back_and_the_monotonic_time_does_not() {
    let mut sim = Sim::new(1);
    sim.host("logger").run(|| async {
        let (start, date) = (now(), time_of_day());
        assert_eq!(date, UNIX_EPOCH + 946_684_800 * SECOND, "the first of January 2000");
        sleep(5 * SECOND).await;
        assert_eq!(now() - start, 5 * SECOND);
        assert_eq!(date.duration_since(time_of_day()).unwrap(), 55 * SECOND, "it is earlier than before");
        sleep(5 * SECOND).await;
        assert_eq!(time_of_day().duration_since(date).unwrap(), 10 * SECOND);
    });
    sim.at(SECOND, |sim| sim.step_time_of_day_back("logger", 60 * SECOND));
    sim.at(6 * SECOND, |sim| sim.step_time_of_day_ahead("logger", 60 * SECOND));
    assert_eq!(sim.run().elapsed(), 10 * SECOND, "sleeps do not change");
}

#[test]
fn a_clock_keeps_its_lead_when_its_host_restarts() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut sim = Sim::new(1);
    sim.host("host").run_with(seen.clone(), async |seen| {
        seen.lock().unwrap().push(time_of_day());
        sleep(3 * SECOND).await;
    });
    sim.at(SECOND, |sim| sim.jump_clock("host", SECOND));
    sim.at(2 * SECOND, |sim| sim.restart("host"));
    sim.run();
    let seen = seen.lock().unwrap();
    assert_eq!(seen[1].duration_since(seen[0]).unwrap(), 3 * SECOND);
}

#[test]
fn a_jump_is_a_function_of_the_seed_too() {
    run_twice(3, |sim| {
        let ahead = SECOND * sim.random(5) as u32;
        sim.host("one").run(|| async {
            let socket = UdpSocket::bind("0.0.0.0:9").await?;
            for _ in 0..5 {
                sleep(SECOND).await;
                socket.send_to(b"tick", "10.0.0.2:9".parse().unwrap()).await?;
            }
            io::Result::Ok(())
        });
        sim.host("two").run(|| async { sleep(3 * SECOND).await });
        sim.at(SECOND / 2, move |sim| sim.jump_clock("one", ahead));
    });
}
