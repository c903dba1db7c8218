//! The futurelock program of the literature (Oxide, RFD 609), diagnosed. A task waits for a lock that was granted to one of its own
//! futures, which it does not poll any more: it would hang for ever, silently.
//!
//! Here the diagnosis reports what the task waits for, and where; then the program is stopped, and all its tasks end.
//!
//! ```text
//! cargo run --release --example futurelock
//! ```

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::Poll;
use std::time::Duration;

use convoke::inspect::Diagnosis;
use convoke::prelude::*;
use convoke::sync::Mutex;

/// Lock that all tasks of this example take.
pub type Lock = Arc<Mutex<Vec<&'static str>>>;

fn main() {
    let (tell, told) = channel();
    let diagnosing = Diagnosis::new().report(move |report| drop(tell.send(report.to_string()))).start();
    let diagnosing = diagnosing.expect("there is a thread for it");
    let pool = ThreadPool::new(2).expect("there are threads for it");

    println!("with `select!`, which sets a future aside:\n");
    let lock = Lock::default();
    let launched = launch(&pool.executor()).name("program").start(program(lock.clone(), Way::SetAside));
    let report = told.recv().expect("it waits for itself, and is told so");
    println!("{report}\n");
    assert!(report.starts_with("futurelock: `do_stuff`"), "{report}");
    launched.request_stop(StopReason::Named("it would wait for ever"));
    let ended = if launched.wait().is_stopped() { "stopped" } else { "by itself" };
    println!("it ended: {ended}; the lock is free: {}\n", lock.try_lock().is_some());

    println!("with `race`, which asks the loser to stop, and waits for it:\n");
    let lock = Lock::default();
    let launched = launch(&pool.executor()).start(program(lock.clone(), Way::Race));
    launched.wait().unwrap();
    println!("it ended by itself; who had the lock: {:?}", lock.try_lock().expect("nobody is left"));
    drop(diagnosing);
}

/// How the program waits for the first of two futures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The other one is kept, and not polled any more.
    SetAside,
    /// The other one is asked to stop, and awaited.
    Race,
}

/// Runs a child that holds the lock for some time, and `do_stuff`, which needs the lock.
pub async fn program(lock: Lock, way: Way) {
    scope(async |s| {
        let held = lock.clone();
        s.named("background").spawn(async move {
            let mut log = held.lock().await;
            sleep(Duration::from_millis(50)).await;
            log.push("background");
        });
        // The background is the first.
        checkpoint().await;
        s.named("do_stuff").spawn(async move {
            match way {
                Way::SetAside => do_stuff(&lock).await,
                Way::Race => do_stuff_well(&lock).await,
            }
        });
    })
    .await;
}

/// Waits ten milliseconds for the lock, and then takes it in another way, while the first wait is still there.
async fn do_stuff(lock: &Lock) {
    let mut first = pin!(async { lock.lock().await.push("first") });
    let time_is_up = pin!(sleep(Duration::from_millis(10)).into_future());
    if !ended_first(first.as_mut(), time_is_up).await {
        // `first` is still there, has its place in the queue of the lock, and is not polled from here on.
        lock.lock().await.push("second");
    }
}

/// Does the work of `do_stuff` with `race`: when it returns, both branches have ended, and no future waits unpolled.
async fn do_stuff_well(lock: &Lock) {
    let first = async {
        lock.lock().await.push("first");
        true
    };
    let time_is_up = async {
        sleep(Duration::from_millis(10)).await;
        false
    };
    if !race((first, time_is_up)).await {
        lock.lock().await.push("second");
    }
}

/// Does what `select!` does with borrowed futures: polls both until one has ended, and does not poll the other again.
async fn ended_first(
    mut first: Pin<&mut impl Future<Output = ()>>,
    mut second: Pin<&mut impl Future<Output = ()>>,
) -> bool {
    poll_fn(|cx| {
        if first.as_mut().poll(cx).is_ready() {
            Poll::Ready(true)
        } else if second.as_mut().poll(cx).is_ready() {
            Poll::Ready(false)
        } else {
            Poll::Pending
        }
    })
    .await
}
