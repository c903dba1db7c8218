//! The watchdog thread, on the machine's clock. The stuck task waits for its own report, so the tests do not
//! depend on timing.

use std::sync::mpsc::channel;
use std::time::Duration;

use convoke::inspect::{Diagnosis, Finding};
use convoke::prelude::*;
use convoke::sender::prelude::*;

#[test]
fn the_watchdog_tells_of_a_task_while_it_is_stuck_and_afterwards() {
    let (tell, told) = channel();
    let diagnosing = Diagnosis::new()
        .stall_limit(Duration::from_millis(5))
        .report(move |report| drop(tell.send(report.clone())))
        .start()
        .unwrap();
    let is_of = |report: &Finding, name: &str| match report {
        Finding::Stall(stall) => stall.task.name.as_deref() == Some(name),
        _ => false,
    };
    let outcome = sync_wait(
        task(async move {
            // Blocks its thread until it gets its own report.
            let stall = told.iter().find(|report| is_of(report, "stuck")).unwrap();
            checkpoint().await;
            let over = told.iter().find(|report| matches!(report, Finding::StallOver(_))).unwrap();
            [stall.to_string(), over.to_string()]
        })
        .named("stuck"),
    );
    let [stall, over] = outcome.unwrap();
    assert!(stall.starts_with("stall: `stuck` (") && stall.contains("and still does"), "{stall}");
    assert!(over.starts_with("stall over: `stuck` (") && over.contains("after about"), "{over}");
    drop(diagnosing);
}

#[test]
fn a_hook_that_panics_is_called_again() {
    let (tell, told) = channel();
    let diagnosing = Diagnosis::new()
        .stall_limit(Duration::from_millis(1))
        .report(move |report| {
            tell.send(()).unwrap();
            panic!("no room for {report}");
        })
        .start()
        .unwrap();
    let outcome = sync_wait(task(async move {
        // Each of the two polls lasts until it is reported: a stall, its end, another stall.
        told.recv().unwrap();
        checkpoint().await;
        told.recv().unwrap();
        told.recv().unwrap();
    }));
    assert_eq!(outcome, Outcome::Value(()));
    drop(diagnosing);
}
