//! `select!`: a race of futures with different values.
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke::prelude::*;
use convoke::select;
use convoke::sync::{Event, mpsc};
use convoke::task::{forever, stopped};

/// Writes `text` when it is closed, after a turn of others.
struct Closes(&'static str, Arc<Mutex<Vec<&'static str>>>);

impl AsyncClose for Closes {
    type Error = Never;

    async fn close(self, exit: Exit) -> Result<(), Never> {
        checkpoint().await;
        assert!(!exit.is_clean(), "{exit}");
        self.1.lock().unwrap().push(self.0);
        Ok(())
    }
}

#[test]
fn branches_of_different_types_have_expressions_of_one_type() {
    let outcome = block_on(async {
        select! {
            number = async { 20_u32 } => number + 1,
            _ = forever() => 0,
            text = async { String::from("late") } => text.len() as u32,
        }
    });
    assert_eq!(outcome, Outcome::Value(21));
}

#[test]
fn losers_are_stopped_and_have_closed_before_the_expression_of_the_winner_runs() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let outcome = block_on(async {
        select! {
            () = using(Closes("first loser", log.clone()), async |_| pending::<()>().await) => log.lock().unwrap().push("never"),
            () = async {
                checkpoint().await;
                log.lock().unwrap().push("wins");
            } => log.lock().unwrap().push("expression"),
            () = using(Closes("second loser", log.clone()), async |_| pending::<()>().await) => unreachable!(),
        }
    });
    assert_eq!(outcome, Outcome::Value(()));
    let mut log = log.lock().unwrap();
    log[1..3].sort_unstable();
    assert_eq!(*log, ["wins", "first loser", "second loser", "expression"]);
}

#[test]
fn an_expression_can_leave_the_function_and_the_loop_around_it() {
    async fn first_even(numbers: &mut mpsc::Receiver<&str>) -> Result<u32, std::num::ParseIntError> {
        let mut odd = 0;
        loop {
            select! {
                received = numbers.recv() => {
                    let Some(text) = received else { break };
                    let number: u32 = text.parse()?;
                    if number.is_multiple_of(2) {
                        return Ok(number);
                    }
                }
                () = forever() => continue,
            }
            odd += 1;
        }
        Ok(odd)
    }
    let run = |texts: &'static [&'static str]| {
        let (sender, mut receiver) = mpsc::channel(8);
        texts.iter().for_each(|text| sender.try_send(*text).unwrap());
        drop(sender);
        block_on(async move { first_even(&mut receiver).await.ok() }).unwrap()
    };
    assert_eq!(run(&["1", "4", "5"]), Some(4), "by `return`");
    assert_eq!(run(&["1", "3"]), Some(2), "by `break`");
    assert_eq!(run(&["1", "x", "4"]), None, "by `?`");
}

#[test]
fn a_pattern_takes_the_value_apart_and_a_sender_is_a_future() {
    let outcome = block_on(async {
        let time = Duration::from_secs(3600);
        select! {
            (left, right) = join((async { 1 }, async { 2 })) => left + right,
            () = sleep(time) => 0,
        }
    });
    assert_eq!(outcome, Outcome::Value(3));
}

#[test]
fn what_the_branches_borrow_is_free_again_in_the_expression() {
    let outcome = block_on(async {
        let mut text = String::from("a");
        select! {
            () = async { text.push('b') } => text.push('c'),
        }
        text
    });
    assert_eq!(outcome, Outcome::Value(String::from("abc")));
}

#[test]
fn a_branch_that_stops_leaves_and_a_select_without_branches_left_is_stopped() {
    let outcome = block_on(async {
        select! {
            () = async { stopped().await } => "the first",
            () = checkpoint() => "the second",
        }
    });
    assert_eq!(outcome, Outcome::Value("the second"));
    let outcome = block_on(async {
        select! {
            () = async { stopped().await } => {}
            () = async { stopped().await } => {}
        }
    });
    assert_eq!(outcome, Outcome::Stopped);
}

#[test]
fn a_stop_from_outside_stops_all_branches_and_runs_no_expression() {
    let source = StopSource::new();
    let log = Arc::new(Mutex::new(Vec::new()));
    let changes = convoke::env::Changes::new().stop_token(source.token());
    let outcome = convoke::executor::block_on_with(changes, async {
        let stops = async {
            checkpoint().await;
            source.request_stop(StopReason::Requested);
            forever().await
        };
        select! {
            () = using(Closes("closed", log.clone()), async |_| pending::<()>().await) => log.lock().unwrap().push("first"),
            () = stops => log.lock().unwrap().push("second"),
        }
    });
    assert_eq!(outcome, Outcome::Stopped);
    assert_eq!(*log.lock().unwrap(), ["closed"]);
}

#[test]
#[should_panic(expected = "a loser panics while it stops")]
fn a_panic_of_a_loser_is_the_panic_of_the_select() {
    let _ = block_on(async {
        let clean_up = async |_| -> () { panic!("a loser panics while it stops") };
        let panics = ensure(clean_up, async { pending::<()>().await });
        select! {
            () = panics => {}
            () = checkpoint() => unreachable!("a panic outranks the value"),
        }
    });
}

#[test]
fn a_busy_branch_does_not_starve_the_one_behind_it() {
    let outcome = block_on(async {
        let event = Event::new();
        event.set();
        let busy = async {
            loop {
                event.wait().await;
            }
        };
        select! {
            () = busy => "busy",
            () = async { event.wait().await } => "behind it",
        }
    });
    assert_eq!(outcome, Outcome::Value("behind it"));
}

#[test]
fn twelve_branches_are_selected_from() {
    let outcome = block_on(async {
        select! {
            () = forever() => 1,
            () = forever() => 2,
            () = forever() => 3,
            () = forever() => 4,
            () = forever() => 5,
            () = forever() => 6,
            () = forever() => 7,
            () = forever() => 8,
            () = forever() => 9,
            () = forever() => 10,
            () = forever() => 11,
            n = async { 12 } => n,
        }
    });
    assert_eq!(outcome, Outcome::Value(12));
}
