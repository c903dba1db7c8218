//! Hostile programs in explorations: wakers that call back, promises made in the name of others, hooks that
//! replace themselves. None of them may run while the exploration holds a lock or a borrow.

#![allow(unsafe_code)]
use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, RawWaker, RawWakerVTable, Waker};
use std::time::Duration;

use convoke::cleanup::set_cleanup_hook;
use convoke::env::current;
use convoke::executor::set_overdue_hook;
use convoke::prelude::*;
use convoke::testing::{Ended, Probe, explore_inner_stops, explore_stops};
use convoke::timeout;

const LONG: Duration = Duration::from_secs(3600);

type StoredRegion = Pin<Box<dyn Future<Output = ()>>>;

thread_local! {
    /// A future with a region in it, which wakers drop.
    static REGION: RefCell<Option<StoredRegion>> = const { RefCell::new(None) };
    static DROPPED_BY_A_WAKER: Cell<usize> = const { Cell::new(0) };
}

/// Drops the stored region, if the caller is the exploration and not the program.
fn drop_region() {
    if current::env(|env| env.is_none()) && REGION.take().is_some() {
        DROPPED_BY_A_WAKER.set(DROPPED_BY_A_WAKER.get() + 1);
    }
}

/// Returns a waker around another. Cloning, waking or dropping it drops the stored region.
fn foreign(inner: &Waker) -> Waker {
    let data = Arc::into_raw(Arc::new(inner.clone())).cast();
    // SAFETY: `data` is an `Arc<Waker>`, each function of `FOREIGN` treats it so and keeps its count right,
    // and all else that they touch is thread-local.
    unsafe { Waker::from_raw(RawWaker::new(data, &FOREIGN)) }
}

static FOREIGN: RawWakerVTable = RawWakerVTable::new(
    |data| {
        drop_region();
        // SAFETY: `data` comes from `foreign`, and the caller owns one count of the `Arc`, which stays alive.
        unsafe { Arc::increment_strong_count(data.cast::<Waker>()) };
        RawWaker::new(data, &FOREIGN)
    },
    |data| {
        drop_region();
        // SAFETY: `data` comes from `foreign`, and `wake` consumes the caller's count.
        unsafe { Arc::from_raw(data.cast::<Waker>()) }.wake_by_ref();
    },
    |data| {
        drop_region();
        // SAFETY: `data` comes from `foreign`, and the caller's count keeps it alive during the call.
        unsafe { &*data.cast::<Waker>() }.wake_by_ref();
    },
    |data| {
        drop_region();
        // SAFETY: `data` comes from `foreign`, and `drop` consumes the caller's count.
        drop(unsafe { Arc::from_raw(data.cast::<Waker>()) });
    },
);

/// A guard that drops the stored region when the program ends in any way.
struct Clears;

impl Drop for Clears {
    fn drop(&mut self) {
        drop(REGION.take());
    }
}

/// The exploration stores the wakers of regions and requests one region to stop. It must not hold a borrow,
/// because the waker may drop another region.
#[test]
fn a_waker_that_drops_a_region_while_another_is_asked_to_stop_does_not_meet_it() {
    let exploration = explore_inner_stops(|| async {
        let _clears = Clears;
        let mut waits = Box::pin(timeout(LONG, async { checkpoint().await }));
        REGION.set(Some(Box::pin(async { _ = timeout(LONG, pending::<()>()).await })));
        poll_fn(|cx| {
            let waker = foreign(cx.waker());
            let mut cx = Context::from_waker(&waker);
            REGION.with_borrow_mut(|kept| {
                if let Some(kept) = kept {
                    assert!(kept.as_mut().poll(&mut cx).is_pending());
                }
            });
            waits.as_mut().poll(&mut cx).map(|_| ())
        })
        .await;
    });
    assert!(!exploration.inner_runs().is_empty());
    assert!(DROPPED_BY_A_WAKER.get() > 0, "no waker was called by an exploration");
}

#[test]
fn an_exploration_inside_of_an_explored_program_is_one_of_its_own() {
    let outer = explore_stops(|| async {
        checkpoint().await;
        let inner = explore_inner_stops(|| async { _ = timeout(LONG, checkpoint()).await });
        assert_eq!(inner.ended(Ended::Value) + inner.ended(Ended::Stopped), inner.runs().len());
        checkpoint().await;
    });
    assert!(outer.points() > 1);
}

#[test]
fn promises_in_the_name_of_the_last_number_are_excused() {
    let probe = Probe::new();
    let (first, last) = (0, u64::MAX);
    let due = probe.in_the_name_of(first, || probe.must_drop("kept"));
    probe.in_the_name_of(last, || probe.acquired("lost"));
    probe.excuse(last);
    assert_eq!(probe.complaints(), ["`kept` was made 1 time and dropped 0 times"]);
    drop(due);
    assert!(probe.complaints().is_empty());
}

/// A pair of functions: one sets a hook that holds a value, the other sets another hook.
type SetsHook = (fn(Replaces), fn());

/// A value that sets another hook when it is dropped.
struct Replaces(fn(), Arc<AtomicUsize>);

impl Drop for Replaces {
    fn drop(&mut self) {
        if self.1.fetch_add(1, Ordering::Relaxed) == 0 {
            (self.0)();
        }
    }
}

/// A hook is dropped without the lock that guards it, because what it holds may set the next one.
#[test]
fn hooks_that_set_others_when_they_go_do_not_wait_for_themselves() {
    let ways: [SetsHook; 2] = [
        (
            |replaces| set_cleanup_hook(move |_| _ = &replaces),
            || set_cleanup_hook(|problem| eprintln!("{problem}")),
        ),
        (
            |replaces| set_overdue_hook(move |_| _ = &replaces),
            || set_overdue_hook(|overdue| eprintln!("{overdue}")),
        ),
    ];
    for (set, another) in ways {
        let gone = Arc::new(AtomicUsize::new(0));
        set(Replaces(another, gone.clone()));
        another();
        assert_eq!(gone.load(Ordering::Relaxed), 1);
    }
}
