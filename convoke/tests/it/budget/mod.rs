//! The budget of a task: a loop over awaits that are all ready lets others run, whatever it awaits; and timers,
//! sockets and signals are seen meanwhile. Everything is counted, nothing is timed.
#![cfg(all(feature = "net", feature = "sender"))]

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use convoke::driver::io_context;
use convoke::executor::{RunLoop, reschedule};
use convoke::io::duplex;
use convoke::net::{TcpListener, TcpStream, UdpSocket};
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::sync::{
    Barrier, Event, Mutex, Notify, OnceCell, RwLock, Semaphore, broadcast, lossless_broadcast, mpmc, mpsc,
    oneshot, watch,
};
use convoke::task::budget::{self, PER_POLL, unconstrained};
use convoke::task::{for_each_concurrent, generator, map_concurrent, task};
use convoke::time::{DelayQueue, interval_at, stop_after, timeout_at};

/// Runs a loop over `$one`, which is ready each time, beside a sibling that needs one run. The sibling runs
/// before the loop has completed more awaits than its budget.
macro_rules! lets_a_sibling_run {
    ($($(#[$attribute:meta])* $name:ident: |$scope:ident| { $($setup:tt)* } => $one:expr;)*) => { $(
        $(#[$attribute])*
        #[test]
        fn $name() {
            let outcome = io_context().unwrap().block_on(async {
                let ran = Arc::new(AtomicBool::new(false));
                scope(async |$scope| {
                    $($setup)*
                    // A new poll, with a full budget.
                    checkpoint().await;
                    let sibling = ran.clone();
                    $scope.spawn(async move { sibling.store(true, Ordering::Relaxed) });
                    let mut awaits = 0;
                    while !ran.load(Ordering::Relaxed) {
                        let _ = $one;
                        awaits += 1;
                        assert!(awaits <= PER_POLL + 1, "{awaits} awaits, and the sibling did not run");
                    }
                })
                .await;
            });
            outcome.unwrap();
        }
    )* };
}

/// More than one poll can use up.
const MANY: usize = 2 * PER_POLL as usize;

mod executors;
mod foreign;
mod ready;
mod sockets;

#[test]
fn one_for_each_iteration_of_a_long_concurrent_loop() {
    let outcome = block_on(async {
        let (ran, done) = (Arc::new(AtomicBool::new(false)), AtomicU32::new(0));
        scope(async |s| {
            let sibling = ran.clone();
            s.spawn(async move { sibling.store(true, Ordering::Relaxed) });
            for_each_concurrent(0..if cfg!(miri) { 300 } else { 1000 }, 4, async |_: u32| {
                let before = done.fetch_add(1, Ordering::Relaxed);
                assert!(before <= PER_POLL || ran.load(Ordering::Relaxed), "the sibling did not run");
            })
            .await;
        })
        .await;
    });
    assert_eq!(outcome, Outcome::Value(()));
}

#[test]
fn a_busy_branch_does_not_starve_the_branches_behind_it() {
    async fn busy(lock: &Mutex<u32>, over: &AtomicBool) {
        let mut awaits = 0;
        while !over.load(Ordering::Relaxed) {
            drop(lock.lock().await);
            awaits += 1;
            assert!(awaits <= 4 * PER_POLL, "the other branch does not get its turn");
        }
    }
    async fn other(over: &AtomicBool) {
        let lock = Mutex::new(0);
        for _ in 0..3 {
            drop(lock.lock().await);
        }
        over.store(true, Ordering::Relaxed);
    }
    let outcome = block_on(async {
        let lock = Mutex::new(0);
        let over = AtomicBool::new(false);
        join((busy(&lock, &over), other(&over))).await;
        let over = AtomicBool::new(false);
        let branches: Vec<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>> =
            vec![Box::pin(busy(&lock, &over)), Box::pin(other(&over))];
        join(branches).await;
        let over = AtomicBool::new(false);
        local_scope(async |s| {
            s.spawn(busy(&lock, &over));
            s.spawn(other(&over));
        })
        .await;
    });
    assert_eq!(outcome, Outcome::Value(()));
}

#[test]
fn a_branch_behind_more_ready_ones_than_the_budget_has_its_turn() {
    let outcome = block_on(async {
        let lock = Semaphore::new(1);
        join((0..3 * MANY).map(async |_| drop(lock.acquire().await)).collect::<Vec<_>>()).await.len()
    });
    assert_eq!(outcome, Outcome::Value(3 * MANY));
}

#[test]
fn branches_that_wait_cost_nothing() {
    let outcome = block_on(async {
        let event = Event::new();
        let waits = join((0..2 * MANY).map(|_| event.wait()).collect::<Vec<_>>());
        let sets = async {
            // All of them are polled first, though they are more than the budget.
            assert!(budget::has_remaining());
            event.set();
        };
        join((waits, sets)).await.0.len()
    });
    assert_eq!(outcome, Outcome::Value(2 * MANY));
}

#[test]
fn a_message_or_permit_that_was_granted_is_not_lost_by_a_yield() {
    let outcome = block_on(async {
        let (sender, mut receiver) = mpsc::channel::<usize>(1);
        let lock = Mutex::new(0);
        let (sends, mut received) = (
            async {
                for n in 0..MANY {
                    sender.send(n).await.unwrap();
                }
                drop(sender)
            },
            Vec::new(),
        );
        let receives = async {
            while let Some(n) = receiver.recv().await {
                // Uses up the budget at each point of a round.
                for _ in 0..n % 7 {
                    drop(lock.lock().await);
                }
                received.push(n);
            }
        };
        join((sends, receives)).await;
        received
    });
    assert_eq!(outcome, Outcome::Value((0..MANY).collect()));
}

#[test]
fn unconstrained_code_does_not_yield() {
    let outcome = block_on(async {
        let ran = Arc::new(AtomicBool::new(false));
        scope(async |s| {
            let (sibling, lock) = (ran.clone(), Mutex::new(0));
            s.spawn(async move { sibling.store(true, Ordering::Relaxed) });
            unconstrained(async {
                for _ in 0..3 * PER_POLL {
                    *lock.lock().await += 1;
                }
            })
            .await;
            ran.load(Ordering::Relaxed)
        })
        .await
    });
    assert_eq!(outcome, Outcome::Value(false));
}

/// Receives from a channel that is never empty until `over` is set. Returns the number of messages that were
/// received after `due` became true.
async fn receives_until(over: &AtomicBool, due: impl Fn() -> bool) -> u32 {
    let (sender, mut receiver) = mpsc::unbounded();
    let mut after = 0;
    while !over.load(Ordering::Relaxed) {
        sender.try_send(()).unwrap();
        receiver.recv().await;
        if due() {
            after += 1;
            assert!(after <= 4 * PER_POLL, "the loop does not look at its timers and its driver");
        }
    }
    after
}

#[test]
fn a_consumer_of_a_busy_channel_does_not_delay_a_timer() {
    let over = Arc::new(AtomicBool::new(false));
    let program = async {
        scope(async |s| {
            let ticked = over.clone();
            s.spawn(async move {
                sleep(Duration::from_millis(2)).await;
                ticked.store(true, Ordering::Relaxed);
            });
            checkpoint().await;
            // Later than the timer's own time: a loop may call timers a moment late, in groups.
            let at = Instant::now() + Duration::from_millis(20);
            receives_until(&over, || Instant::now() > at).await;
        })
        .await;
    };
    assert_eq!(convoke::executor::BlockOn::block_on(&RunLoop::new(), program), Outcome::Value(()));
}

#[cfg(unix)]
#[test]
fn a_sleep_is_over_before_a_busy_task_runs_twice() {
    let outcome = io_context().unwrap().block_on(async {
        let awaits = Arc::new(AtomicU32::new(0));
        let over = Arc::new(AtomicBool::new(false));
        scope(async |s| {
            let (counts, ends) = (awaits.clone(), over.clone());
            s.spawn(async move {
                let lock = Mutex::new(());
                while !ends.load(Ordering::Relaxed) {
                    drop(lock.lock().await);
                    counts.fetch_add(1, Ordering::Relaxed);
                }
            });
            checkpoint().await;
            for _ in 0..10 {
                let before = awaits.load(Ordering::Relaxed);
                // It starts now and not when the loop next checks its timers, and is due after one run of the other.
                sleep(Duration::from_nanos(1)).await;
                let meanwhile = awaits.load(Ordering::Relaxed) - before;
                assert!(meanwhile <= PER_POLL, "{meanwhile} awaits of the busy task");
            }
            over.store(true, Ordering::Relaxed);
        })
        .await;
    });
    outcome.unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "needs a kernel: signals")]
fn a_consumer_of_a_busy_channel_does_not_hide_a_signal() {
    use convoke::signal::{Signal, raise, signals};

    let outcome = io_context().unwrap().block_on(async {
        let over = Arc::new(AtomicBool::new(false));
        scope(async |s| {
            let heard = over.clone();
            let mut signals = signals([Signal::USER_2]).unwrap();
            s.spawn(async move {
                signals.next().await;
                heard.store(true, Ordering::Relaxed);
            });
            checkpoint().await;
            raise(Signal::USER_2).unwrap();
            // Without a bound: a thread of its own takes the signal. It would never end if the loop did not look.
            receives_until(&over, || false).await;
        })
        .await;
    });
    outcome.unwrap();
}

#[test]
fn work_from_outside_runs_beside_a_busy_task_of_a_pool() {
    let pool = ThreadPool::new(1).unwrap();
    let (began, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let busy = launch(&pool.executor()).start({
        let (began, over) = (began.clone(), over.clone());
        async move {
            let (sender, mut receiver) = mpsc::unbounded();
            while !over.load(Ordering::Relaxed) {
                began.store(true, Ordering::Relaxed);
                sender.try_send(()).unwrap();
                receiver.recv().await;
            }
        }
    });
    while !began.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
    let ends = launch(&pool.executor()).start(async move { over.store(true, Ordering::Relaxed) });
    assert_eq!(ends.wait(), Outcome::Value(()));
    assert_eq!(busy.wait(), Outcome::Value(()));
}

#[test]
#[cfg_attr(miri, ignore = "needs a kernel: sockets")]
fn checkpoints_between_sends_do_not_hide_datagrams_from_their_reader() {
    const SENDS: u32 = 2000;
    let outcome = io_context().unwrap().block_on(async {
        let reader = UdpSocket::bind("127.0.0.1:0").await?;
        let sender = UdpSocket::bind("127.0.0.1:0").await?;
        let address = reader.local_addr()?;
        let received = Arc::new(AtomicU32::new(0));
        let counts = received.clone();
        scope(async |s| {
            s.spawn(async move {
                while counts.fetch_add(1, Ordering::Relaxed) < SENDS {
                    reader.recv_from(&mut [0; 8]).await?;
                }
                std::io::Result::Ok(())
            });
            checkpoint().await;
            for sent in 1..=SENDS {
                sender.send_to(b"!", address).await?;
                let unread = sent.saturating_sub(received.load(Ordering::Relaxed));
                assert!(unread <= 2 * PER_POLL, "{unread} datagrams wait for their reader");
                if sent % 16 == 0 {
                    checkpoint().await;
                }
            }
            s.request_stop(StopReason::Requested);
            Ok(())
        })
        .await
    });
    outcome.unwrap().unwrap();
}

#[test]
fn a_stop_from_another_thread_ends_a_loop_that_is_always_ready() {
    let run_loop = RunLoop::new();
    let source = StopSource::new();
    let stops = std::thread::spawn({
        let source = source.clone();
        move || source.request_stop(StopReason::Shutdown)
    });
    let program = async {
        let mut ticks = interval_at(Instant::now() - Duration::from_secs(3600), Duration::from_nanos(1));
        loop {
            ticks.tick().await;
        }
    };
    let changes = convoke::env::Changes::new().stop_token(source.token());
    let outcome = sync_wait_with(
        changes,
        task(async { pin!(program).await }).starts_on(&ThreadPool::new(1).unwrap().executor()),
    );
    assert_eq!(outcome, Outcome::<()>::Stopped);
    stops.join().unwrap();
    drop(run_loop);
}
