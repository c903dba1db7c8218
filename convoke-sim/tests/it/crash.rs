//! Crashes: a host stops at once. What does not run, what survives, and what happens to its memory at the end
//! of the run.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke::net::{SocketOption, TcpListener, TcpStream, UdpSocket, UnixStream};
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::sim::{Ending, Fault, Link, Sim, explore_faults, replay_fault};
use convoke::sync::mpsc;
use convoke::task::forever;

const SECOND: Duration = Duration::from_secs(1);

/// A shared log.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn say(&self, what: &str) {
        self.0.lock().unwrap().push(what.to_owned());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A value that logs its drop.
struct Drops(Log);

impl Drop for Drops {
    fn drop(&mut self) {
        self.0.say("destructor");
    }
}

/// Has clean-up and destructors at every level, and a child for each kind of wait.
async fn waits_in_all_ways(said: Log) -> io::Result<()> {
    let clean_up = {
        let said = said.clone();
        async move |_| said.say("clean-up")
    };
    let body = async {
        let _drops = Drops(said.clone());
        let listener = TcpListener::bind("0.0.0.0:7").await?;
        let (one, other) = UnixStream::pair()?;
        scope(async |s| {
            s.spawn(ensure(
                {
                    let said = said.clone();
                    async move |_| said.say("clean-up of a child")
                },
                async move {
                    let _other = other;
                    let _ = one.read(&mut [0]).await;
                },
            ));
            let ticks = said.clone();
            s.spawn(async move {
                let _drops = Drops(ticks.clone());
                loop {
                    sleep(SECOND).await;
                    ticks.say("tick");
                }
            });
            listener.accept().await.map(drop)
        })
        .await
    };
    ensure(clean_up, body).await
}

#[test]
fn nothing_of_a_crashed_host_runs_while_the_others_go_on() {
    let mut sim = Sim::new(1);
    let said = Log::default();
    let (of_host, of_other) = (said.clone(), said.clone());
    sim.host("server").run(move || waits_in_all_ways(of_host.clone()));
    sim.host("other").run(move || {
        let said = of_other.clone();
        async move {
            sleep(100 * SECOND).await;
            assert_eq!(said.all(), ["tick", "tick"], "one hundred seconds later");
        }
    });
    sim.at(SECOND * 5 / 2, |sim| sim.crash("server"));
    let report = sim.run();
    assert_eq!(report.host("server").unwrap().ending(), &Ending::Crashed);
    // The memory is freed at the end: destructors run, clean-up does not.
    assert_eq!(said.all(), ["tick", "tick", "destructor", "destructor"]);
}

#[test]
fn the_next_run_starts_at_once_beside_what_is_left_of_the_last() {
    let mut sim = Sim::new(1);
    let (probe, runs) = (sim.probe(), Arc::new(AtomicUsize::new(0)));
    let count = runs.clone();
    sim.host("server").run(move || {
        let (probe, run) = (probe.clone(), count.fetch_add(1, Ordering::Relaxed));
        async move {
            let _held = probe.must_drop("server");
            // The port is free again, and so is the name.
            let _listener = TcpListener::bind("0.0.0.0:7").await?;
            if run == 0 {
                forever().await
            }
            io::Result::Ok(())
        }
    });
    sim.at(SECOND, |sim| sim.crash("server"));
    sim.at(2 * SECOND, |sim| sim.restart("server"));
    let report = sim.run();
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    let server = report.host("server").unwrap();
    assert_eq!((server.starts(), server.ending()), (2, &Ending::Completed));
    assert_eq!(report.elapsed(), 2 * SECOND);
}

#[test]
fn wakes_from_others_do_not_wake_the_dead() {
    let mut sim = Sim::new(3);
    let said = Log::default();
    let (sender, receiver) = mpsc::channel::<u32>(4);
    let (receiver, heard) = (Arc::new(Mutex::new(Some(receiver))), said.clone());
    sim.host("server").run(move || {
        let (receiver, heard) = (receiver.lock().unwrap().take(), heard.clone());
        async move {
            if let Some(mut receiver) = receiver {
                while let Some(number) = receiver.recv().await {
                    heard.say(&number.to_string());
                }
            }
        }
    });
    sim.host("client").run(move || {
        let sender = sender.clone();
        async move {
            for number in 0..3 {
                sleep(SECOND).await;
                let _ = sender.send(number).await;
            }
        }
    });
    sim.at(SECOND * 3 / 2, |sim| sim.crash("server"));
    sim.run();
    assert_eq!(said.all(), ["0"]);
}

/// Performs an operation of each kind without a wait between them, and logs each.
async fn hurries(said: Log) -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:7").await?;
    said.say("bound");
    listener.local_addr()?;
    let (one, other) = UnixStream::pair()?;
    said.say("paired");
    one.set_option(SocketOption::KeepAlive(Some(SECOND)))?;
    one.write_all(b"hello").await?;
    said.say("written");
    other.read_exact(&mut [0; 5]).await?;
    said.say("read");
    let socket = UdpSocket::bind("0.0.0.0:9").await?;
    socket.send_to(b"bye", ([127, 0, 0, 1], 9).into()).await?;
    said.say("sent");
    Ok(())
}

#[test]
fn a_crash_at_any_operation_is_survived_by_the_next_run() {
    let count = Arc::new(AtomicUsize::new(0));
    let exploration = explore_faults(1, "host", &[Fault::Crash], |sim| {
        let count = count.clone();
        sim.host("host").run(move || {
            count.fetch_add(1, Ordering::Relaxed);
            hurries(Log::default())
        });
    });
    // Each time it was restarted and then completed.
    assert_eq!(exploration.ended(|ending| *ending == Ending::Completed), exploration.runs().len());
    assert_eq!(count.load(Ordering::Relaxed), 1 + 2 * exploration.runs().len());
}

#[test]
fn what_a_crash_strikes_and_what_comes_behind_it_is_never_done() {
    let said = Log::default();
    let undisturbed = ["bound", "paired", "written", "read", "sent"];
    let set_up = |sim: &mut Sim| {
        let said = said.clone();
        sim.host("host").run(move || hurries(said.clone()));
    };
    // Operations: bind, pair, write, read, bind, send. The crash strikes the write.
    replay_fault(1, "host", 2, Fault::Crash, set_up);
    let expected: Vec<&str> = undisturbed[..2].iter().chain(&undisturbed).copied().collect();
    assert_eq!(said.all(), expected, "no error comes back from it, and nothing at all");
}

#[test]
fn an_operation_in_flight_is_not_finished_by_a_crash() {
    let mut sim = Sim::new(5);
    let said = Log::default();
    let outside = said.clone();
    sim.host("server").run(move || {
        let said = outside.clone();
        async move {
            let (one, _other) = UnixStream::pair()?;
            // The driver owns the buffer.
            let (read, _buffer) = one.read_owned(vec![0; 16]).await;
            said.say("finished");
            read.map(drop)
        }
    });
    sim.at(SECOND, |sim| sim.crash("server"));
    sim.at(9 * SECOND, |_| {});
    sim.run();
    assert!(said.all().is_empty(), "{said:?}");
}

#[test]
fn promises_of_a_crashed_run_are_excused_and_those_of_the_next_are_not() {
    for forgets in [false, true] {
        let mut sim = Sim::new(7);
        let forgotten = Arc::new(Mutex::new(None));
        let kept = forgotten.clone();
        let (probe, runs) = (sim.probe(), Arc::new(AtomicUsize::new(0)));
        sim.host("server").run(move || {
            let (probe, run) = (probe.clone(), runs.fetch_add(1, Ordering::Relaxed));
            let kept = kept.clone();
            async move {
                probe.acquired("lock file");
                let held = probe.must_drop("guard");
                if run == 0 {
                    forever().await
                }
                if !forgets {
                    probe.cleaned_up("lock file");
                    drop(held);
                } else {
                    *kept.lock().unwrap() = Some(held);
                }
            }
        });
        sim.at(SECOND, |sim| sim.restart("server"));
        let ran = sim.try_run();
        match forgets {
            false => drop(ran.unwrap()),
            true => {
                let what = ran.unwrap_err().what().to_owned();
                assert!(what.contains("`guard` was made 2 times and dropped 1 time"), "{what}");
                assert!(what.contains("`lock file` was acquired 2 times and cleaned up 0 times"), "{what}");
            }
        }
    }
}

#[test]
fn a_failure_shows_the_tasks_of_the_current_run() {
    let mut sim = Sim::new(7);
    sim.host("server").run(|| async {
        let listener = TcpListener::bind("0.0.0.0:7").await?;
        listener.accept().await.map(drop)
    });
    sim.at(SECOND, |sim| sim.restart("server"));
    sim.host("client").run(|| async {
        sleep(2 * SECOND).await;
        Err::<(), _>("no")
    });
    let failure = sim.try_run().unwrap_err();
    assert_eq!(failure.tasks().matches("`server`").count(), 1, "{failure}");
    assert!(convoke::inspect::tree().find("server").is_none(), "all of them are gone");
}

#[test]
fn crashes_again_and_again_leave_nothing_behind() {
    let mut sim = Sim::new(11);
    let shared = Arc::new(());
    let of_host = shared.clone();
    sim.host("server").daemon().run(move || {
        let shared = of_host.clone();
        async move {
            let _shared = shared;
            waits_in_all_ways(Log::default()).await
        }
    });
    sim.host("client").run(|| async {
        for _ in 0..20 {
            sleep(SECOND / 3).await;
            // It is half-open soon, and then gone.
            let _ = timeout(SECOND, TcpStream::connect("server:7")).await;
        }
    });
    for round in 1..40 {
        sim.at(SECOND / 5 * round, |sim| sim.restart("server"));
    }
    let report = sim.run();
    assert!(report.host("server").unwrap().starts() >= 20, "{report}");
    assert_eq!(Arc::strong_count(&shared), 1);
}

/// Returns `depth` nested scopes.
fn nested(depth: usize) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        scope(async |s| {
            if depth > 0 {
                s.spawn(nested(depth - 1));
            }
            never::<()>().await;
        })
        .await
    })
}

#[test]
fn a_deep_tree_is_dissolved_without_a_deep_stack() {
    let mut sim = Sim::new(1);
    sim.host("deep").run(|| nested(if cfg!(miri) { 30 } else { 3000 }));
    sim.at(SECOND, |sim| sim.crash("deep"));
    sim.run();
}

/// Accepts one connection, sends a word and waits.
async fn says_hello() -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:7").await?;
    let (stream, _) = listener.accept().await?;
    stream.write_all(b"hello").await?;
    forever().await
}

/// Returns how many bytes a client receives from a host that crashes a millisecond after it has sent them,
/// with ten milliseconds of latency.
fn heard_of_the_last_word(seed: u64, change: impl Fn(&mut Sim) + 'static) -> usize {
    let mut sim = Sim::new(seed);
    sim.links(Link::calm().latency(SECOND / 100..SECOND / 100));
    let heard = Arc::new(AtomicUsize::new(0));
    sim.host("server").daemon().run(says_hello);
    sim.host("client").run_with(heard.clone(), async |heard| {
        let stream = TcpStream::connect("server:7").await?;
        let mut word = [0; 5];
        while let Ok(Ok(count @ 1..)) = timeout(60 * SECOND, stream.read(&mut word)).await {
            heard.fetch_add(count, Ordering::Relaxed);
        }
        io::Result::Ok(())
    });
    sim.at(SECOND * 11 / 1000, move |sim| change(sim));
    sim.run();
    heard.load(Ordering::Relaxed)
}

#[test]
fn what_was_sent_before_a_crash_arrives_after_it() {
    assert_eq!(heard_of_the_last_word(1, |sim| sim.crash("server")), 5);
    assert_eq!(heard_of_the_last_word(1, |sim| sim.restart("server")), 5);
}

#[test]
fn nobody_sends_again_what_a_crashed_host_has_sent_in_vain() {
    let lost = |sim: &mut Sim| {
        sim.crash("server");
        sim.partition("server", "client");
        let healed = sim.now() + SECOND / 50;
        sim.at(healed, |sim| sim.heal_all());
    };
    assert_eq!(heard_of_the_last_word(1, lost), 0);
    let late = |sim: &mut Sim| {
        sim.partition("server", "client");
        let healed = sim.now() + SECOND / 50;
        sim.at(healed, |sim| sim.heal_all());
    };
    assert_eq!(heard_of_the_last_word(1, late), 5, "one that runs does");
}
