//! One test for each program. The results of each run are stored, and checked when all runs have ended.

use std::cell::RefCell;
use std::time::Duration;

use convoke::prelude::*;
use convoke::testing::{Ended, Exploration, explore_stops, explore_stops_with};

use super::connection_pool::{Pool, transfer};
use super::crawler::{Limits, Site, crawl};
use super::deadline_job::{Logbook, one_turn};
use super::fan_out::{Journal, fetch_all};
use super::futurelock::{Lock, Way, program};
use super::pages::{Server, find};
use super::scopes::{Story, pick, price, session};
use super::stop_tree::{Counts, tree};
use super::supervised_workers::{Desk, STAFF, shift};
use super::tasks::server;
use super::traces::traced;

/// Explores a program that writes results into a `T`, a new one for each run. Returns the exploration and the
/// `T` of each run, the undisturbed one first.
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
    let exploration = explore_stops_with(traced(&kept, traces, program, only_stopped));
    let kept = kept.into_inner();
    assert_eq!(kept.len(), exploration.runs().len() + 1);
    (exploration, kept)
}

#[test]
fn fan_out_closes_every_connection_wherever_it_is_stopped() {
    let program = |journal| async {
        let pages = fetch_all(4, None, journal).await.unwrap();
        assert!(pages.iter().all(|page| page.starts_with("text")), "half of it is no result: {pages:?}");
    };
    let (exploration, journals) = explore(Journal::default, program, false);
    assert_eq!(exploration.undisturbed().ended(), Ended::Value);
    assert!(exploration.ended(Ended::Stopped) > 8, "{exploration}");
    for journal in journals {
        assert_eq!(journal.left_open(), 0, "{journal:?}");
    }
}

#[test]
fn fan_out_with_a_broken_page_closes_every_connection_wherever_it_is_stopped() {
    let (exploration, journals) = explore(Journal::default, |journal| fetch_all(4, Some(2), journal), false);
    assert_eq!(exploration.undisturbed().ended(), Ended::Value);
    assert!(exploration.ended(Ended::Stopped) > 4, "{exploration}");
    for journal in journals {
        assert_eq!(journal.left_open(), 0, "{journal:?}");
    }
}

#[test]
fn every_task_of_the_tree_that_began_cleans_up_wherever_it_is_stopped() {
    let (exploration, all_counts) = explore(Counts::default, |counts| tree(3, 2, counts), true);
    assert_eq!(exploration.ended(Ended::Stopped), exploration.runs().len(), "{exploration}");
    assert_eq!(all_counts[0].waiting(), 9, "undisturbed, all of them wait");
    for counts in all_counts {
        assert_eq!(counts.cleaned(), counts.waiting(), "{counts:?}");
    }
}

#[test]
fn the_connection_is_back_and_clean_wherever_a_transfer_is_stopped() {
    let program = |pool: Pool| async move { transfer(&pool).await };
    let (exploration, pools) = explore(|| Pool::new(1), program, false);
    assert_eq!(exploration.undisturbed().ended(), Ended::Value);
    assert_eq!(pools[0].statistics().committed, 1);
    let mut rolled_back = 0;
    for (pool, run) in pools[1..].iter().zip(exploration.runs()) {
        assert!(pool.is_clean(), "{run:?}: {pool:?}");
        let statistics = pool.statistics();
        assert!(statistics.committed + statistics.rolled_back <= 1, "{run:?}: {pool:?}");
        // A commit that has begun is finished: after a stop the money may have moved, after a normal end it
        // must have.
        assert!(run.ended() == Ended::Stopped || statistics.committed == 1, "{run:?}: {pool:?}");
        rolled_back += statistics.rolled_back;
    }
    assert!(rolled_back > 3, "{exploration}");
}

#[test]
fn the_one_connection_is_clean_wherever_two_transfers_that_want_it_are_stopped() {
    let (exploration, pools) = explore(|| Pool::new(1), two_transfers, false);
    assert_eq!(exploration.undisturbed().ended(), Ended::Value);
    assert_eq!(pools[0].statistics().committed, 2);
    for (pool, run) in pools[1..].iter().zip(exploration.runs()) {
        assert!(pool.is_clean(), "{run:?}: {pool:?}");
    }
    // Also between the two: the first has committed, and the second has not started, or was rolled back.
    let one_each = |pool: &&Pool| pool.statistics().committed == 1 && pool.statistics().rolled_back == 1;
    assert!(pools.iter().any(|pool| one_each(&pool)), "{exploration}");
}

#[test]
fn the_one_connection_is_clean_wherever_transfers_inside_one_task_are_stopped() {
    let both = |pool: Pool| async move {
        join((transfer(&pool), transfer(&pool))).await;
    };
    let (_, pools) = explore(|| Pool::new(1), both, false);
    assert_eq!(pools[0].statistics().committed, 2);
    for pool in pools {
        assert!(pool.is_clean(), "{pool:?}");
    }
}

#[test]
fn a_transfer_that_fails_beside_another_leaves_the_connection_to_it() {
    let (exploration, pools) = explore(|| Pool::new(1), a_transfer_and_an_error, false);
    assert_eq!(exploration.undisturbed().ended(), Ended::Value);
    for pool in pools {
        assert!(pool.is_clean(), "{pool:?}");
        assert_eq!(pool.statistics().committed, 0, "{pool:?}");
    }
}

#[test]
fn who_waits_for_itself_can_be_stopped_at_every_point_and_leaves_the_lock_free() {
    let (exploration, locks) = explore(Lock::default, |lock| program(lock, Way::SetAside), true);
    assert_eq!(exploration.ended(Ended::Stopped), exploration.runs().len(), "{exploration}");
    assert_eq!(*locks[0].try_lock().unwrap(), ["background"], "neither of the others came to it");
    for lock in locks {
        assert!(lock.try_lock().is_some());
    }
}

#[test]
fn who_races_does_not_wait_for_itself_and_leaves_the_lock_free_wherever_it_is_stopped() {
    let (exploration, locks) = explore(Lock::default, |lock| program(lock, Way::Race), false);
    assert_eq!(exploration.undisturbed().ended(), Ended::Value);
    assert_eq!(*locks[0].try_lock().unwrap(), ["background", "second"]);
    for lock in locks {
        assert!(lock.try_lock().is_some());
    }
}

#[test]
fn the_connection_of_the_pages_is_closed_wherever_their_reader_leaves_or_is_stopped() {
    for (word, fetched) in [("c", 2), ("nowhere", 3)] {
        let server = || Server::new(&["a", "b c", "d"]);
        let (exploration, servers) = explore(server, |server| find(server, word), false);
        assert_eq!(exploration.undisturbed().ended(), Ended::Value);
        assert_eq!(servers[0].log().len(), fetched + 2, "{:?}", servers[0].log());
        assert!(exploration.ended(Ended::Stopped) > fetched, "{exploration}");
        for server in servers {
            assert_eq!(server.open_connections(), 0, "{:?}", server.log());
        }
    }
}

#[test]
fn the_logbook_of_the_job_is_right_wherever_it_is_stopped() {
    let turns = |logbook: Logbook| async move {
        while !one_turn(7, Duration::from_millis(5), logbook.clone()).await.is_finished() {}
    };
    let (exploration, logbooks) = explore(Logbook::default, turns, false);
    assert_eq!(exploration.undisturbed().ended(), Ended::Value);
    assert!(exploration.ended(Ended::Stopped) > 7, "{exploration}");
    assert_eq!(logbooks[0].next_record(), 7);
    for logbook in logbooks {
        let done: Vec<_> = (0..logbook.next_record()).collect();
        assert_eq!(logbook.done(), done, "each once, and none that the logbook does not know");
    }
}

#[test]
fn no_job_is_lost_or_done_twice_wherever_the_shift_is_stopped() {
    const JOBS: u32 = 30;
    let program = |desk: Desk| async move {
        let report = shift(desk, &STAFF).await;
        assert_eq!(
            report.failures.iter().map(|failure| failure.name().unwrap()).collect::<Vec<_>>(),
            ["cid"]
        );
        assert_eq!(report.values.len(), STAFF.len() - 1);
    };
    let (exploration, desks) = explore(|| Desk::new(JOBS), program, false);
    assert_eq!(exploration.undisturbed().ended(), Ended::Value);
    assert!(exploration.ended(Ended::Stopped) > 20, "{exploration}");
    let all: Vec<_> = (1..=JOBS).collect();
    assert_eq!(desks[0].jobs(), (all.clone(), vec![]), "undisturbed, all of it is done");
    assert_eq!(["ann", "bob", "cid", "dot"].map(|name| desks[0].restarts(name)), [0, 2, 3, 0]);
    for (desk, run) in desks[1..].iter().zip(exploration.runs()) {
        let (done, left) = desk.jobs();
        let mut both = [done, left].concat();
        both.sort_unstable();
        assert_eq!(both, all, "{run:?}: {desk:?}");
    }
}

#[test]
fn every_connection_is_closed_and_the_bound_is_kept_wherever_the_crawler_is_stopped() {
    const LIMITS: Limits = Limits { at_a_time: 3, interval: Duration::from_millis(8) };
    let program = |site: Site| async move {
        let report = crawl(site, LIMITS, |_| ()).await;
        assert_eq!((report.pages.len(), report.broken.len()), (7, 2));
    };
    let (exploration, sites) = explore(|| Site::sample(8), program, false);
    assert_eq!(exploration.undisturbed().ended(), Ended::Value);
    assert!(exploration.ended(Ended::Stopped) > 20, "{exploration}");
    for (path, requests) in sites[0].requests() {
        let expected = match path.as_str() {
            "/page/2" => 2,
            "/page/4" => 3,
            _ => 1,
        };
        assert_eq!(requests, expected, "{path}");
    }
    assert_eq!(sites[0].connections(), (0, LIMITS.at_a_time));
    for (site, run) in sites[1..].iter().zip(exploration.runs()) {
        let (open, most) = site.connections();
        assert_eq!(open, 0, "{run:?}");
        assert!(most <= LIMITS.at_a_time, "{run:?}");
    }
}

#[test]
fn the_price_of_the_tour_has_nothing_to_clean_up() {
    let exploration = explore_stops(|| price(3));
    assert_eq!(exploration.undisturbed().ended(), Ended::Value);
    assert!(exploration.ended(Ended::Stopped) > 0, "{exploration}");
}

#[test]
fn what_was_picked_is_put_back_wherever_the_scope_of_the_tour_is_stopped() {
    let (exploration, stories) = explore(Story::default, pick, false);
    assert_eq!(exploration.undisturbed().ended(), Ended::Value);
    assert_eq!(stories[0].lines()[0], "pears: failed");
    for story in stories {
        let mut who: Vec<_> = story.lines().iter().map(|line| line[..5].to_owned()).collect();
        let told = who.len();
        who.sort();
        who.dedup();
        assert_eq!(who.len(), told, "each at most once: {story:?}");
    }
}

#[test]
fn the_session_of_the_tour_closes_the_inner_first_wherever_it_is_stopped() {
    let timed = |story| async move { timeout(Duration::from_secs(1), session(story)).await.is_err() };
    let (exploration, stories) = explore(Story::default, timed, false);
    assert_eq!(exploration.undisturbed().ended(), Ended::Value);
    for story in stories {
        let lines: Vec<_> =
            story.lines().iter().map(|line| line.split(',').next().unwrap().to_owned()).collect();
        let whole =
            ["transaction: closing", "transaction: closed", "connection: closing", "connection: closed"];
        assert!(lines == whole || lines.is_empty(), "{lines:?}");
    }
}

#[test]
fn the_server_of_the_tour_ends_after_its_connections_wherever_it_is_stopped() {
    let exploration = explore_stops(server);
    assert_eq!(exploration.undisturbed().ended(), Ended::Value);
    assert!(exploration.ended(Ended::Stopped) > 5, "{exploration}");
}

async fn two_transfers(pool: Pool) {
    scope(async |s| {
        for _ in 0..2 {
            let pool = pool.clone();
            s.spawn(async move { transfer(&pool).await });
        }
    })
    .await;
}

/// A transfer, and an error that comes meanwhile.
async fn a_transfer_and_an_error(pool: Pool) -> Result<(), &'static str> {
    scope(async |s| {
        let user = pool.clone();
        s.spawn(async move {
            transfer(&user).await;
            Ok(())
        });
        checkpoint().await;
        checkpoint().await;
        Err("the other half failed")
    })
    .await
}
