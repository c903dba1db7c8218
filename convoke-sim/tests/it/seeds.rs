//! A run is a function of its seed.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke::net::{TcpListener, TcpStream, UdpSocket};
use convoke::prelude::*;
use convoke::sim::{Ending, Link, Sim, SimReport, explore_seeds, note, run_twice, simulate};
use convoke::time::now;

const SECOND: Duration = Duration::from_secs(1);

/// Answers each word after a delay that depends on the word.
async fn server() -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:7").await?;
    scope(async |s| {
        loop {
            let (stream, _) = listener.accept().await?;
            s.spawn(async move {
                let mut word = [0; 8];
                while stream.read_exact(&mut word).await.is_ok() {
                    sleep(Duration::from_millis(u64::from(word[0]))).await;
                    if stream.write_all(&word).await.is_err() {
                        break;
                    }
                }
            });
        }
    })
    .await
}

/// Three clients and a server that answers each, with many short tasks and a rough network.
fn busy(sim: &mut Sim) {
    sim.links(Link::rough());
    sim.host("server").daemon().run(server);
    for name in ["one", "two", "three"] {
        sim.host(name).run(|| async {
            scope(async |s| {
                for word in 0..3_u8 {
                    s.spawn(async move {
                        let Ok(stream) = TcpStream::connect("server:7").await else { return };
                        if stream.write_all(&[word; 8]).await.is_ok() {
                            let _ = stream.read_exact(&mut [0; 8]).await;
                        }
                    });
                }
            })
            .await;
        });
    }
}

fn run(seed: u64) -> SimReport {
    let mut sim = Sim::new(seed);
    busy(&mut sim);
    sim.run()
}

#[test]
fn the_same_seed_makes_the_same_run() {
    for seed in 0..if cfg!(miri) { 1 } else { 10 } {
        let first = run(seed);
        // The thread has run something else in between, which must not matter.
        run(seed + 100);
        let again = run(seed);
        assert_eq!(first.trace(), again.trace());
        assert_eq!(first, again);
    }
}

#[test]
fn another_thread_makes_the_same_run() {
    let here = run(7);
    let there = std::thread::spawn(|| run(7)).join().unwrap();
    assert_eq!(here, there);
}

#[test]
fn other_seeds_make_other_runs() {
    const SEEDS: usize = if cfg!(miri) { 2 } else { 20 };
    let reports = explore_seeds(0..SEEDS as u64, busy);
    let mut fingerprints: Vec<u64> = reports.iter().map(SimReport::fingerprint).collect();
    fingerprints.sort_unstable();
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), SEEDS);
}

#[test]
fn the_seed_decides_which_task_is_next() {
    let orders: Vec<Vec<u32>> = (0..20)
        .map(|seed| {
            let order = Arc::new(Mutex::new(Vec::new()));
            let kept = order.clone();
            simulate(seed, async move {
                scope(async |s| {
                    for number in 0..3 {
                        let order = order.clone();
                        s.spawn(async move { order.lock().unwrap().push(number) });
                    }
                })
                .await;
            });
            Arc::into_inner(kept).unwrap().into_inner().unwrap()
        })
        .collect();
    let mut kinds = orders;
    kinds.sort();
    kinds.dedup();
    assert_eq!(kinds.len(), 6, "all orders of three: {kinds:?}");
}

async fn receiver(heard: Arc<Mutex<Vec<u8>>>) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:9").await?;
    loop {
        let mut number = [0];
        let (_, from) = socket.recv_from(&mut number).await?;
        assert_eq!(from.to_string(), "10.0.0.2:9");
        heard.lock().unwrap().push(number[0]);
    }
}

#[test]
fn datagrams_are_lost_reordered_and_doubled() {
    let mut sim = Sim::new(3);
    sim.links(Link::usual().loss(0.2).duplicates(0.2));
    let heard = Arc::new(Mutex::new(Vec::new()));
    let kept = heard.clone();
    sim.host("receiver").daemon().run(move || receiver(heard.clone()));
    sim.host("sender").run(|| async {
        let socket = UdpSocket::bind("0.0.0.0:9").await?;
        sleep(SECOND).await;
        socket.connect("receiver:9").await?;
        for number in 0..100 {
            socket.send(&[number]).await?;
        }
        sleep(SECOND).await;
        io::Result::Ok(())
    });
    sim.run();
    let heard = kept.lock().unwrap().clone();
    let mut once = heard.clone();
    once.sort_unstable();
    once.dedup();
    assert!((60..95).contains(&once.len()), "some were lost: {}", once.len());
    assert!(heard.len() > once.len(), "some came twice");
    assert!(!heard.is_sorted(), "some overtook others");
}

#[test]
fn a_day_passes_in_no_time_and_to_the_nanosecond() {
    let day = Duration::from_secs(86_400 - 1);
    let passed = simulate(1, async move {
        let start = now();
        sleep(day).await;
        now() - start
    });
    assert_eq!(passed, day);
}

#[test]
fn daemons_are_stopped_when_the_others_have_ended() {
    let report = run(1);
    assert_eq!(report.host("server").unwrap().ending(), &Ending::Stopped);
    assert_eq!(report.host("one").unwrap().ending(), &Ending::Completed);
    let printed = report.to_string();
    assert!(printed.starts_with("seed 1: "), "{printed}");
    assert!(printed.contains("\n  server       stopped ("), "{printed}");
}

#[test]
fn what_a_program_draws_by_chance_follows_the_seed() {
    let draws = |seed| {
        simulate(seed, async {
            let schedule = convoke::retry::Backoff::constant(SECOND).jitter(1.0).up_to(3);
            (schedule.waits().collect::<Vec<_>>(), convoke::env::chance::random())
        })
    };
    assert_eq!(draws(1), draws(1));
    assert_ne!(draws(1), draws(2));
}

#[test]
fn two_runs_of_a_seed_are_compared() {
    run_twice(3, busy);
}

#[test]
#[should_panic = "line 3 of the trace was\n    2.000000s  host: round 0\nand in the second run\n    2.000000s  host: round 1"]
fn a_program_that_is_another_one_each_time_is_found() {
    let rounds = Mutex::new(0);
    run_twice(3, |sim| {
        let round = {
            let mut rounds = rounds.lock().unwrap();
            *rounds += 1;
            *rounds - 1
        };
        sim.host("host").run(move || async move {
            sleep(SECOND).await;
            note("the same");
            sleep(SECOND).await;
            note(format_args!("round {round}"));
        });
    });
}

#[test]
fn a_trace_names_hosts_ports_and_what_programs_say() {
    let mut sim = Sim::new(1);
    sim.links(Link::calm());
    sim.host("server").daemon().run(server);
    sim.host("client").run(|| async {
        let stream = TcpStream::connect("server:7").await?;
        note("connected");
        stream.write_all(&[0; 8]).await?;
        let socket = UdpSocket::bind("0.0.0.0:9").await?;
        socket.send_to(b"hello", "10.0.0.1:9".parse().unwrap()).await?;
        io::Result::Ok(())
    });
    let report = sim.run();
    let lines: Vec<&str> = report.trace().iter().map(|line| line.what()).collect();
    for expected in [
        "client:49152 → server:7: connect",
        "client: connected",
        "client:49152 → server:7: 8 bytes",
        "client:9 → server:9: a datagram of 5 bytes",
        "client:49152 → server:7: end of stream",
    ] {
        assert!(lines.contains(&expected), "{lines:#?}");
    }
}
