//! `scope`, `local_scope`, and the tree of their tasks.

use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::forever;
use convoke::testing::Ended;

use super::explore;

/// `scope`, first example.
#[test]
fn two_halves_of_a_sum() {
    explore(Outcome::Value(5050), || async {
        scope(async |s| {
            let left = s.spawn_future(async { (1..=50).sum::<u32>() });
            let right = s.spawn_future(async { (51..=100).sum::<u32>() });
            left.await + right.await
        })
        .await
    });
}

async fn fetch(n: u32) -> Result<(), String> {
    if n == 3 {
        return Err(format!("no page {n}"));
    }
    never::<()>().await;
    Ok(())
}

/// `scope`, second example.
#[test]
fn the_first_error_stops_the_rest() {
    let exploration = explore(Outcome::Value(Err("no page 3".to_owned())), || async {
        scope(async |s| {
            for n in 1..=5 {
                s.spawn(fetch(n));
            }
            Ok(())
        })
        .await
    });
    // That page fails without a wait, so no stop can come before it.
    assert_eq!(exploration.ended(Ended::Value), exploration.runs().len(), "{exploration}");
}

/// `Scope::request_stop`.
#[test]
fn a_scope_does_without_its_child() {
    explore(Outcome::Value("done"), || async {
        scope(async |s| {
            s.spawn(async { forever().await });
            s.request_stop(StopReason::Named("enough"));
            "done"
        })
        .await
    });
}

/// `Scope::named`.
#[test]
fn a_child_with_a_name() {
    explore(Outcome::Value(()), || async {
        scope(async |s| s.named("reader").spawn(async { checkpoint().await })).await
    });
}

/// `local_scope`.
#[test]
fn children_that_borrow() {
    explore(Outcome::Value((3, 5)), || async {
        let text = String::from("one two three");
        let mut longest = 0;
        let words = local_scope(async |s| {
            let count = s.spawn_future(async { text.split(' ').count() });
            s.spawn(async { longest = text.split(' ').map(str::len).max().unwrap_or(0) });
            count.await
        })
        .await;
        (words, longest)
    });
}

/// `tree`.
#[test]
fn a_server_that_looks_at_its_children() {
    explore(Outcome::Value(true), || async {
        scope(async |s| {
            let _reader = s.named("reader").spawn_future(async { never::<()>().await });
            s.named("writer").spawn(async { checkpoint().await });
            checkpoint().await;
            let printed = convoke::inspect::tree().to_string();
            printed.contains("`reader`") && printed.contains("`writer`")
        })
        .await
    });
}

/// `testing::explore_stops`.
#[test]
fn pages_that_take_a_minute() {
    explore(Outcome::Value(12), || async {
        scope(async |s| {
            let pages = s.spawn_future(async {
                sleep(std::time::Duration::from_millis(1)).await;
                12
            });
            s.spawn(async { checkpoint().await });
            pages.await
        })
        .await
    });
}
