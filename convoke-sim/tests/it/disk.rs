//! Disks: what survives a crash, the end of a run, and the destructors of crashed programs.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke::net::TcpListener;
use convoke::prelude::*;
use convoke::sim::{Disk, Fault, Sim, explore_faults, explore_seeds, replay_fault};
use convoke::task::forever;

const SECOND: Duration = Duration::from_secs(1);

async fn writes_and_waits(disk: Disk<Vec<u32>>) -> io::Result<()> {
    disk.write(|numbers| numbers.extend([1, 2]));
    disk.sync().await?;
    for number in 3..=5 {
        disk.write(|numbers| numbers.push(number));
    }
    forever().await
}

#[test]
fn a_crash_keeps_what_was_synced_and_any_beginning_of_the_rest() {
    let lengths: Arc<Mutex<BTreeSet<usize>>> = Arc::default();
    explore_seeds(0..40, |sim| {
        let (disk, lengths) = (sim.disk("server", Vec::new()), lengths.clone());
        sim.host("server").run_with(disk.clone(), writes_and_waits);
        sim.at(SECOND, |sim| sim.crash("server"));
        sim.finally(move || {
            disk.read(|numbers| {
                assert!([1, 2, 3, 4, 5].starts_with(numbers), "{numbers:?}");
                lengths.lock().unwrap().insert(numbers.len());
            });
        });
    });
    assert_eq!(*lengths.lock().unwrap(), BTreeSet::from([2, 3, 4, 5]), "all of them come about");
}

async fn waits() {
    forever().await
}

/// Tries to save unsynced data at its end, by clean-up and by a destructor.
struct Saves(Disk<&'static str>);

impl Drop for Saves {
    fn drop(&mut self) {
        self.0.write(|word| *word = "saved by a destructor");
    }
}

#[test]
fn neither_clean_up_nor_destructors_of_the_dead_reach_the_disk() {
    let mut sim = Sim::new(1);
    let disk = sim.disk("server", "as it was");
    sim.host("server").run_with(disk.clone(), async |disk| {
        let _saves = Saves(disk.clone());
        let clean_up = async move |_| {
            disk.write(|word| *word = "saved by clean-up");
            let _ = disk.sync().await;
        };
        ensure(clean_up, waits()).await
    });
    sim.at(SECOND, |sim| sim.crash("server"));
    let seen = disk.clone();
    sim.finally(move || seen.read(|word| assert_eq!(*word, "as it was")));
    sim.run();
    disk.read(|word| assert_eq!(*word, "as it was"));
}

#[test]
fn a_stop_runs_the_clean_up_that_a_crash_does_not() {
    for crashes in [false, true] {
        let mut sim = Sim::new(1);
        let disk = sim.disk("server", 0);
        sim.host("server").run_with(disk.clone(), async |disk| {
            let clean_up = async move |_| {
                disk.write(|number| *number = 1);
                disk.sync().await.unwrap();
            };
            ensure(clean_up, waits()).await
        });
        sim.at(SECOND, move |sim| if crashes { sim.crash("server") } else { sim.stop("server") });
        sim.run();
        assert_eq!(disk.read_synced(|number| *number), i32::from(!crashes));
    }
}

#[test]
fn faults_strike_a_sync_too() {
    let set_up = |sim: &mut Sim| {
        let disk = sim.disk("server", 0);
        sim.host("server").run_with(disk.clone(), async |disk| {
            disk.write(|number| *number += 1);
            disk.sync().await
        });
        sim.finally(move || disk.read(|number| assert!((1..=2).contains(number), "{number}")));
    };
    let exploration = explore_faults(3, "server", &Fault::ALL, set_up);
    assert_eq!(exploration.undisturbed().host("server").unwrap().operations(), 1);
    assert_eq!(exploration.runs().len(), Fault::ALL.len());
    let report = replay_fault(3, "server", 0, Fault::Error, set_up);
    assert!(report.to_string().contains("failed: "), "{report}");
    let report = replay_fault(3, "server", 0, Fault::Crash, set_up);
    assert_eq!(report.host("server").unwrap().starts(), 2);
}

#[test]
fn only_what_was_written_before_a_sync_began_is_synced() {
    let mut sim = Sim::new(1);
    let disk = sim.disk("server", 0);
    sim.host("server").run_with(disk, async |disk| {
        disk.write(|number| *number = 1);
        let late = async {
            checkpoint().await;
            disk.write(|number| *number = 2);
        };
        let (synced, ()) = join((disk.sync(), late)).await;
        synced.unwrap();
        assert_eq!((disk.read_synced(|number| *number), disk.read(|number| *number)), (1, 2));
    });
    sim.run();
}

/// A value whose destructor calls into the simulation: a socket that closes itself.
type Holds = Option<Arc<TcpListener>>;

#[test]
fn values_with_sockets_in_them_are_dropped_without_a_lock_of_the_simulation() {
    // The seed decides whether the write survives.
    explore_seeds(0..8, |sim| {
        let disk: Disk<Holds> = sim.disk("server", None);
        sim.host("server").run_with(disk, async |disk| -> io::Result<()> {
            let listener = Arc::new(TcpListener::bind("0.0.0.0:1").await?);
            disk.write(|value| *value = Some(listener));
            disk.sync().await?;
            // The synced value is dropped at the next sync, and the one after that at the crash.
            disk.write(|value| *value = None);
            disk.sync().await?;
            let listener = Arc::new(TcpListener::bind("0.0.0.0:2").await?);
            disk.write(|value| *value = Some(listener));
            forever().await
        });
        sim.at(SECOND, |sim| sim.crash("server"));
    });
}

/// A listener, and a token that is counted.
type Stored = Option<Arc<(TcpListener, Arc<()>)>>;

async fn keeps_a_socket(disk: Disk<Stored>, held: Arc<()>) -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:1").await?;
    disk.write(|value| *value = Some(Arc::new((listener, held))));
    disk.sync().await?;
    forever().await
}

/// The simulation owns the disk, and the socket refers to the simulation.
#[test]
fn a_value_with_a_socket_in_it_is_dropped_when_the_run_is_over() {
    let held = Arc::new(());
    let mut sim = Sim::new(1);
    let disk = sim.disk("server", None);
    let holds = held.clone();
    sim.host("server").run_with(disk, move |disk| keeps_a_socket(disk, holds.clone()));
    sim.at(SECOND, |sim| sim.crash("server"));
    sim.run();
    assert_eq!(Arc::strong_count(&held), 1);
}

/// A value that reads its own disk when it is dropped.
#[derive(Clone)]
struct Looks(Arc<Mutex<Option<Disk<Looks>>>>);

impl Drop for Looks {
    fn drop(&mut self) {
        let disk = self.0.lock().unwrap().clone();
        if let Some(disk) = disk {
            disk.read(|_| {});
        }
    }
}

#[test]
fn a_value_that_looks_at_its_disk_when_it_goes_finds_nobody_there() {
    let room: Arc<Mutex<Option<Disk<Looks>>>> = Arc::default();
    let kept = room.clone();
    explore_seeds(0..4, move |sim| {
        let disk = sim.disk("server", Looks(kept.clone()));
        let before = kept.lock().unwrap().replace(disk.clone());
        drop(before);
        sim.host("server").run_with(disk, async |disk| -> io::Result<()> {
            for _ in 0..3 {
                disk.write(|_| {});
            }
            disk.sync().await?;
            let broken = convoke::Panic::catch(|| disk.write(|_| panic!("halfway")));
            assert!(broken.is_err());
            disk.write(|_| {});
            forever().await
        });
        sim.at(SECOND, |sim| sim.crash("server"));
    });
    let last = room.lock().unwrap().take();
    drop(last);
}
