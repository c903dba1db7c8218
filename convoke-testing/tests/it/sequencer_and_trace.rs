//! Forced order, and recorded order.
use std::future::Future;
use std::time::Duration;

use convoke::Panic;
use convoke::prelude::*;
use convoke::testing::{self, Sequencer, Trace, wait_all_blocked};

fn complaint<F: Future<Output = ()> + 'static>(body: F) -> String {
    let failed = Panic::catch(|| testing::run(body)).expect_err("it should fail");
    failed.message().to_owned()
}

#[test]
fn steps_happen_in_their_order_whichever_task_arrives_first() {
    let trace = Trace::new();
    let notes = trace.clone();
    testing::run(async move {
        scope(async |s| {
            let sequencer = Sequencer::new();
            for step in [4, 2, 0, 3, 1] {
                let (sequencer, notes) = (sequencer.clone(), notes.clone());
                s.spawn(async move {
                    let _turn = sequencer.at(step).await;
                    notes.note(format!("{step} begins"));
                    sleep(Duration::from_secs(1)).await;
                    notes.note(format!("{step} ends"));
                });
            }
        })
        .await;
    });
    trace.assert_eq(
        "0s 0 begins
         1s 0 ends
         1s 1 begins
         2s 1 ends
         2s 2 begins
         3s 2 ends
         3s 3 begins
         4s 3 ends
         4s 4 begins
         5s 4 ends",
    );
}

#[test]
fn a_step_that_is_taken_twice_is_a_misuse() {
    let says = complaint(async {
        let sequencer = Sequencer::new();
        sequencer.at(0).await;
        sequencer.at(0).await;
    });
    assert!(says.contains("`Sequencer::at` at convoke-testing/tests/it/sequencer_and_trace.rs"), "{says}");
    assert!(says.contains("step 0 was already taken"), "{says}");
    let says = complaint(async {
        let sequencer = Sequencer::new();
        let _turn = sequencer.at(0).await;
        sequencer.at(0).await;
    });
    assert!(says.contains("step 0 was already taken"), "{says}");
}

#[test]
fn a_step_that_two_wait_for_is_a_misuse() {
    let says = complaint(async {
        let sequencer = Sequencer::new();
        join((async { drop(sequencer.at(3).await) }, async { drop(sequencer.at(3).await) })).await;
    });
    assert!(says.contains("step 3 has two waiters"), "{says}");
}

#[test]
fn a_step_that_is_skipped_shows_in_the_report_of_who_waits_for_the_next() {
    let says = complaint(async {
        let sequencer = Sequencer::new();
        sequencer.at(0).await;
        sequencer.at(2).await;
    });
    assert!(
        says.contains("hangs") && says.contains("waits at convoke-testing/tests/it/sequencer_and_trace.rs"),
        "{says}"
    );
}

#[test]
fn a_step_that_is_given_up_breaks_those_after_it_and_not_those_before() {
    let says = complaint(async {
        scope(async |s| {
            let sequencer = Sequencer::new();
            let steps = sequencer.clone();
            let given_up = s.spawn_future(async move { drop(steps.at(1).await) });
            wait_all_blocked().await;
            drop(given_up);
            wait_all_blocked().await;
            sequencer.at(0).await;
            sequencer.at(2).await;
        })
        .await;
    });
    assert!(says.contains("step 2 cannot start: the waiter of step 1"), "{says}");
}

#[test]
fn a_trace_that_differs_shows_where() {
    let trace = Trace::new();
    trace.note("opened");
    trace.note("closed");
    trace.assert_eq("opened\nclosed");
    let failed = Panic::catch(|| {
        trace.assert_eq(
            "opened
             read
             closed",
        );
    });
    let differ = failed.expect_err("they differ");
    let says = differ.message();
    assert!(says.ends_with("  opened\n- read\n  closed"), "{says}");
    assert_eq!(trace.to_string(), "opened\nclosed");
    assert_eq!(trace.take(), ["opened", "closed"]);
    trace.assert_eq("");
}

#[test]
fn events_carry_the_time_and_the_name_of_their_task() {
    let trace = Trace::new();
    let notes = trace.clone();
    testing::Play::new().name("main").run(async move {
        scope(async |s| {
            for (name, wait) in [("slow", 2000), ("fast", 250)] {
                let notes = notes.clone();
                s.named(name).spawn(async move {
                    sleep(Duration::from_millis(wait)).await;
                    notes.note("woke\nup");
                });
            }
        })
        .await;
        notes.note("all back");
    });
    trace.assert_eq(
        "250ms fast: woke\\nup
         2s slow: woke\\nup
         2s main: all back",
    );
}

/// Returns what is said of a trace of `noted` that should have been `expected`.
fn difference(expected: &[&str], noted: &[&str]) -> String {
    let trace = Trace::new();
    noted.iter().for_each(|event| trace.note(event));
    let panic = Panic::catch(|| trace.assert_eq(&expected.join("\n"))).unwrap_err();
    panic.message().to_owned()
}

#[test]
fn lines_in_common_stay_and_the_others_are_marked() {
    let shown = difference(&["a", "b", "c", "d"], &["a", "c", "x", "d", "e"]);
    assert!(shown.contains("  a\n- b\n  c\n+ x\n  d\n+ e"), "{shown}");
}

#[test]
fn nothing_in_common_is_one_after_the_other() {
    for (expected, noted, lines) in
        [(&["a"][..], &["b", "c"][..], "- a\n+ b\n+ c"), (&[], &["b"], "+ b"), (&["a"], &[], "- a")]
    {
        let shown = difference(expected, noted);
        assert!(shown.contains(lines), "{shown}");
    }
}
