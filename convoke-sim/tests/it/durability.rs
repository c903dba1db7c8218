//! A queue whose jobs are done at least once, by a worker that crashes: a correct version, and versions with
//! typical bugs. The explorations find bugs that rely on clean-up, or on an order that holds only without
//! crashes.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::sim::{Disk, Fault, Sim, explore_faults, explore_seeds, note, replay_fault};

const JOBS: u8 = 4;
const MILLISECOND: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worker {
    Right,
    AcknowledgesFirst,
    SavesInCleanUp,
    NeverSyncs,
}

/// Sends the first job to each client, and removes it when it was acknowledged.
async fn queue(jobs: Disk<Vec<u8>>) -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:5").await?;
    while let Some(job) = jobs.read(|jobs| jobs.first().copied()) {
        let (worker, _) = listener.accept().await?;
        let handed = timeout(1000 * MILLISECOND, async {
            worker.write_all(&[job]).await?;
            worker.read_exact(&mut [0]).await
        });
        if let Ok(Ok(())) = handed.await {
            note(format_args!("job {job} is acknowledged"));
            jobs.write(|jobs| jobs.remove(0));
            jobs.sync().await?;
        }
    }
    Ok(())
}

async fn work(kind: Worker, done: &Disk<Vec<u8>>) -> io::Result<()> {
    let queue = TcpStream::connect("queue:5").await?;
    let mut job = [0];
    queue.read_exact(&mut job).await?;
    sleep(20 * MILLISECOND).await;
    let save = || done.write(|done| done.push(job[0]));
    match kind {
        Worker::Right => {
            save();
            done.sync().await?;
            queue.write_all(&[1]).await
        }
        Worker::AcknowledgesFirst => {
            queue.write_all(&[1]).await?;
            save();
            done.sync().await
        }
        Worker::SavesInCleanUp => {
            let saves = async |_| {
                save();
                done.sync().await
            };
            ensure(saves, queue.write_all(&[1])).await
        }
        Worker::NeverSyncs => {
            save();
            queue.write_all(&[1]).await
        }
    }
}

async fn worker(kind: Worker, done: Disk<Vec<u8>>) {
    loop {
        if work(kind, &done).await.is_err() {
            sleep(50 * MILLISECOND).await;
        }
    }
}

fn set_up(sim: &mut Sim, kind: Worker) {
    let (jobs, done) = (sim.disk("queue", (0..JOBS).collect::<Vec<_>>()), sim.disk("worker", Vec::new()));
    sim.host("queue").run_with(jobs.clone(), queue);
    sim.host("worker").daemon().run_with(done.clone(), move |done| worker(kind, done));
    // A running worker may be about to save, so this checks only the end, when it has ended or crashed for
    // good.
    sim.finally(move || {
        for job in 0..JOBS {
            let is_there = jobs.read(|jobs| jobs.contains(&job)) || done.read(|done| done.contains(&job));
            assert!(is_there, "job {job} is neither to be done nor done");
        }
    });
}

/// Crashes the worker at times that the seed decides.
fn with_crashes(sim: &mut Sim, kind: Worker) {
    set_up(sim, kind);
    for _ in 0..3 {
        let at = MILLISECOND * sim.random(200) as u32;
        sim.at(at, |sim| sim.restart("worker"));
    }
}

/// Returns the message of the panic of `fails`.
fn said(fails: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(fails)).expect_err("it fails");
    *panic.downcast::<String>().expect("it says why")
}

#[test]
#[cfg_attr(miri, ignore = "runs hundreds of programs")]
fn what_syncs_before_it_acknowledges_survives_every_crash() {
    explore_seeds(0..200, |sim| with_crashes(sim, Worker::Right));
    explore_faults(1, "worker", &Fault::ALL, |sim| set_up(sim, Worker::Right));
}

#[test]
#[cfg_attr(miri, ignore = "runs hundreds of programs")]
fn crashes_by_the_seed_find_what_does_not_and_the_seed_finds_it_again() {
    for kind in [Worker::AcknowledgesFirst, Worker::SavesInCleanUp, Worker::NeverSyncs] {
        let first = said(|| drop(explore_seeds(0..200, |sim| with_crashes(sim, kind))));
        assert!(first.contains("is neither to be done nor done"), "{kind:?}: {first}");
        let (_, seed) = first.rsplit_once("`Sim::new(").expect("it says how to run it again");
        let seed: u64 = seed.split(')').next().and_then(|seed| seed.parse().ok()).expect("a seed");
        let again = said(|| drop(explore_seeds([seed], |sim| with_crashes(sim, kind))));
        assert_eq!(first, again, "to the last line");
    }
}

#[test]
#[cfg_attr(miri, ignore = "runs hundreds of programs")]
fn a_crash_at_each_operation_finds_it_without_luck() {
    let crashes = [Fault::Crash];
    let found =
        said(|| drop(explore_faults(1, "worker", &crashes, |sim| set_up(sim, Worker::AcknowledgesFirst))));
    assert!(found.contains("is neither to be done nor done"), "{found}");
    assert!(found.contains("worker: a crash strikes operation"), "{found}");
    let (_, point) = found.rsplit_once("`CONVOKE_POINT=").expect("it says how to run it again");
    let point: usize = point.split('`').next().and_then(|point| point.parse().ok()).expect("a number");
    let replay =
        || replay_fault(1, "worker", point, Fault::Crash, |sim| set_up(sim, Worker::AcknowledgesFirst));
    assert_eq!(said(|| drop(replay())), found);
}
