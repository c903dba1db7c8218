//! Waits end at their deadline, in the order of their deadlines. The clock is the driver's.

use core::future::{Future, IntoFuture, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use convoke_exec::time::{sleep, sleep_until};
use convoke_task::local_scope;
use convoke_task::race;

use super::DriverHarness;
use super::fixture::in_flight;
use convoke_io::current_driver;

pub(super) fn a_deadline_in_the_past_does_not_wait(harness: &DriverHarness) {
    let driver = harness.driver();
    let begun = driver.now();
    for _ in 0..3 {
        driver.wait(Some(begun)).expect("a driver can wait");
    }
}

pub(super) fn a_wait_ends_at_its_deadline(harness: &DriverHarness) {
    let driver = harness.driver();
    let until = driver.now() + Duration::from_millis(3);
    // A wait may end for no reason; the test is that it ends.
    while driver.now() < until {
        driver.wait(Some(until)).expect("a driver can wait");
    }
}

pub(super) fn sleeps_end_in_the_order_of_their_deadlines(harness: &DriverHarness) {
    let mut unit = Duration::from_millis(10);
    loop {
        let (order, all_have_waited) = harness.run(sleeps([4, 1, 3, 2, 1, 5], unit));
        if all_have_waited {
            assert_eq!(order, [1, 1, 2, 3, 4, 5]);
            return;
        }
        // On a slow machine one may end before the last has begun, and then there is no order.
        unit *= 2;
    }
}

/// Returns the order in which sleeps of `times` units end, and whether all had begun before the first ended.
async fn sleeps(times: [u32; 6], unit: Duration) -> io::Result<(Vec<u32>, bool)> {
    let driver = current_driver()?;
    let begun = driver.now();
    let (order, waiting) = (Mutex::new(Vec::new()), Mutex::new(0));
    local_scope(async |s| {
        for time in times {
            let (order, waiting, driver) = (&order, &waiting, &driver);
            s.spawn(async move {
                let mut sleep = pin!(sleep_until(begun + unit * time).into_future());
                let waits = poll_fn(|cx| Poll::Ready(sleep.as_mut().poll(cx).is_pending())).await;
                if waits {
                    *lock(waiting) += usize::from(driver.now() < begun + unit);
                    sleep.await;
                }
                lock(order).push(time);
            });
        }
    })
    .await;
    Ok((lock(&order).clone(), *lock(&waiting) == times.len()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn input_ends_a_wait_before_its_deadline(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        local_scope(async |s| {
            let read = s.spawn_future(async {
                let late = async {
                    sleep(Duration::from_secs(3600)).await;
                    Err(io::ErrorKind::TimedOut.into())
                };
                let mut buffer = [0; 8];
                race((async { far.read(&mut buffer).await }, late)).await
            });
            in_flight(1).await;
            near.write_all(b"early").await?;
            assert_eq!(read.await?, 5);
            io::Result::Ok(())
        })
        .await
    });
}
