//! Futures in memory of the frame allocator.

use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::alloc::frame;
use convoke::alloc::{frame_dyn, try_frame};

use super::explore;

async fn fibonacci(n: u64) -> u64 {
    if n < 2 {
        checkpoint().await;
        return n;
    }
    frame(fibonacci(n - 1)).await + frame(fibonacci(n - 2)).await
}

/// `frame`.
#[test]
fn recursion_gives_its_frames_back() {
    explore(Outcome::Value(5), || fibonacci(5));
}

/// `try_frame`.
#[test]
fn a_frame_that_was_tried_for_is_given_back() {
    explore(Outcome::Value(8192), || async {
        let large = [1_u8; 8192];
        let length = async move {
            checkpoint().await;
            large.len()
        };
        match try_frame(length) {
            Ok(framed) => framed.await,
            Err(_) => 0,
        }
    });
}

/// `frame_dyn`.
#[test]
fn frames_of_several_types_are_given_back() {
    explore(Outcome::Value(3), || async {
        let works = [frame_dyn(async { 1 }), frame_dyn(async { just(2).await })];
        let mut sum = 0;
        for work in works {
            checkpoint().await;
            sum += work.await;
        }
        sum
    });
}
