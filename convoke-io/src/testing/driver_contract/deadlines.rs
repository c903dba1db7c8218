//! Waits end when the clock says so, in the order of their times. The clock is the driver's.

use core::time::Duration;
use std::io;
use std::sync::Mutex;

use convoke_exec::local_scope;
use convoke_exec::race;
use convoke_exec::time::{sleep, sleep_until};

use super::Harness;
use super::stage::in_flight;
use crate::current_driver;

pub(super) fn a_time_that_has_passed_is_not_waited_for(harness: &Harness) {
    let driver = harness.driver();
    let begun = driver.now();
    for _ in 0..3 {
        driver.wait(Some(begun)).expect("a driver can wait");
    }
}

pub(super) fn a_wait_ends_by_its_time(harness: &Harness) {
    let driver = harness.driver();
    let until = driver.now() + Duration::from_millis(3);
    // It may end for no reason; that it ends is what is tested.
    while driver.now() < until {
        driver.wait(Some(until)).expect("a driver can wait");
    }
}

pub(super) fn sleeps_end_in_the_order_of_their_times(harness: &Harness) {
    let times = [40, 10, 30, 20, 10, 50];
    let order = Mutex::new(Vec::new());
    harness.run(async {
        // Of all of them: on a slow machine the last would begin when the first is over.
        let begun = current_driver()?.now();
        local_scope(async |s| {
            for time in times {
                let order = &order;
                s.spawn(async move {
                    sleep_until(begun + Duration::from_millis(time)).await;
                    order.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(time);
                });
            }
        })
        .await;
        Ok(())
    });
    let order = order.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    assert_eq!(order, [10, 10, 20, 30, 40, 50]);
}

pub(super) fn input_does_not_wait_for_a_time(harness: &Harness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        local_scope(async |s| {
            let read = s.spawn_future(async {
                let late = async {
                    sleep(Duration::from_secs(3600)).await;
                    Err(io::ErrorKind::TimedOut.into())
                };
                let mut room = [0; 8];
                race((async { far.read(&mut room).await }, late)).await
            });
            in_flight(1).await;
            near.write_all(b"early").await?;
            assert_eq!(read.await?, 5);
            io::Result::Ok(())
        })
        .await
    });
}
