//! `join`, `try_join` and `race`.

use std::num::ParseIntError;

use convoke::prelude::*;
use convoke::sender::prelude::*;

use super::explore;

async fn length(text: &str) -> usize {
    checkpoint().await;
    text.len()
}

/// `join`.
#[test]
fn tuples_and_vectors_borrow() {
    explore(Outcome::Value(((8, "sent"), vec![8, 7, 6])), || async {
        let text = String::from("borrowed");
        let both = join((length(&text), just("sent"))).await;
        let all = join((0..3).map(|n| length(&text[n..])).collect::<Vec<_>>()).await;
        (both, all)
    });
}

async fn parse(text: &str) -> Result<u32, ParseIntError> {
    text.parse()
}

async fn wait() -> Result<(), ParseIntError> {
    never::<()>().await;
    Ok(())
}

/// `try_join`.
#[test]
fn the_one_that_would_wait_for_ever_is_asked_to_stop() {
    explore(Outcome::Value(Ok(vec![3, 4])), || async {
        assert_eq!(try_join((parse("1"), parse("2"))).await, Ok((1, 2)));
        assert!(try_join((wait(), parse("one"))).await.is_err());
        try_join(vec![parse("3"), parse("4")]).await
    });
}

/// `race`.
#[test]
fn the_tortoise_wins() {
    explore(Outcome::Value("tortoise"), || async {
        race((async { never().await }, async { "tortoise" })).await
    });
}
