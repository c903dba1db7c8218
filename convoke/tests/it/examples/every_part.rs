//! The example programs, with stops of single parts: a child, an inner scope, a branch. The rest of the
//! program ends, and clean-up runs.

use std::cell::RefCell;
use std::time::Duration;

use convoke::prelude::*;
use convoke::testing::{Exploration, explore_inner_stops, explore_inner_stops_with};

use super::connection_pool::{Pool, transfer};
use super::fan_out::{Journal, fetch_all};
use super::scopes::{Story, session};
use super::stop_tree::{Counts, tree};
use super::tasks::server;
use super::traces::traced;

/// Explores a program that writes results into a `T`, a new one for each run. Returns the exploration and the
/// `T` of each run.
fn explore<T, P>(
    traces: impl Fn() -> T,
    program: impl Fn(T) -> P,
    only_stopped: bool,
) -> (Exploration, Vec<T>)
where
    T: Clone,
    P: Future<Output: Send + 'static> + Send + 'static,
{
    let kept = RefCell::new(Vec::new());
    let exploration = explore_inner_stops_with(traced(&kept, traces, program, only_stopped));
    assert!(exploration.inner_runs().len() > 10, "{exploration}");
    assert_eq!(exploration.skipped(), 0);
    (exploration, kept.into_inner())
}

#[test]
fn fan_out_closes_every_connection_whichever_part_is_stopped() {
    let (_, journals) = explore(Journal::default, |journal| fetch_all(3, None, journal), false);
    for journal in journals {
        assert_eq!(journal.left_open(), 0, "{journal:?}");
    }
}

#[test]
fn every_task_of_the_tree_that_began_cleans_up_whichever_part_is_stopped() {
    let (_, all_counts) = explore(Counts::default, |counts| tree(2, 2, counts), true);
    for counts in all_counts {
        assert_eq!(counts.cleaned(), counts.waiting(), "{counts:?}");
    }
}

#[test]
fn the_one_connection_is_clean_whichever_of_two_transfers_is_stopped() {
    let program = |pool: Pool| async move {
        scope(async |s| {
            for _ in 0..2 {
                let pool = pool.clone();
                s.spawn(async move { transfer(&pool).await });
            }
        })
        .await;
    };
    let (exploration, pools) = explore(|| Pool::new(1), program, false);
    for pool in &pools {
        assert!(pool.is_clean(), "{pool:?}");
    }
    // One was stopped, and it did not delay the other.
    let one = |pool: &&Pool| pool.statistics().committed == 1 && pool.statistics().rolled_back == 1;
    assert!(pools.iter().any(|pool| one(&pool)), "{exploration}");
}

#[test]
fn the_session_of_the_tour_closes_the_inner_first_whichever_part_is_stopped() {
    let timed = |story| async move { timeout(Duration::from_secs(1), session(story)).await.is_err() };
    let (_, stories) = explore(Story::default, timed, false);
    for story in stories {
        let lines: Vec<_> =
            story.lines().iter().map(|line| line.split(',').next().unwrap().to_owned()).collect();
        let whole =
            ["transaction: closing", "transaction: closed", "connection: closing", "connection: closed"];
        assert!(lines == whole || lines.is_empty(), "{lines:?}");
    }
}

#[test]
fn the_server_of_the_tour_ends_whichever_part_is_stopped() {
    assert!(!explore_inner_stops(server).inner_runs().is_empty());
}
