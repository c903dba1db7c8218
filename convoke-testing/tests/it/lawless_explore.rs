//! Explorations run programs of any kind: wakers that call back, promises in anybody's name, hooks that replace themselves. None of it
//! may meet a lock or a borrow that the exploration itself holds.

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

type Kept = Pin<Box<dyn Future<Output = ()>>>;

thread_local! {
    /// A future with a region in it, which wakers drop.
    static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
    static DROPPED_BY_A_WAKER: Cell<usize> = const { Cell::new(0) };
}

/// Drops the region that is kept, if the caller is the exploration, and not the program.
fn drop_kept() {
    if current::env(|env| env.is_none()) && KEPT.take().is_some() {
        DROPPED_BY_A_WAKER.set(DROPPED_BY_A_WAKER.get() + 1);
    }
}

/// A waker around another. Cloning it, waking it and dropping it drops what is kept.
fn foreign(inner: &Waker) -> Waker {
    let data = Arc::into_raw(Arc::new(inner.clone())).cast();
    // SAFETY: the functions below take it for what it is, and count it; what they touch besides belongs to the thread that calls.
    unsafe { Waker::from_raw(RawWaker::new(data, &FOREIGN)) }
}

static FOREIGN: RawWakerVTable = RawWakerVTable::new(
    |data| {
        drop_kept();
        // SAFETY: so in all four: `data` is that of `foreign`, and the caller has one count of it.
        unsafe { Arc::increment_strong_count(data.cast::<Waker>()) };
        RawWaker::new(data, &FOREIGN)
    },
    |data| {
        drop_kept();
        // SAFETY: as above; the count is given up.
        unsafe { Arc::from_raw(data.cast::<Waker>()) }.wake_by_ref();
    },
    |data| {
        drop_kept();
        // SAFETY: as above.
        unsafe { &*data.cast::<Waker>() }.wake_by_ref();
    },
    |data| {
        drop_kept();
        // SAFETY: as above; the count is given up.
        drop(unsafe { Arc::from_raw(data.cast::<Waker>()) });
    },
);

/// Lets go of what is kept when the program ends, by whichever door.
struct Clears;

impl Drop for Clears {
    fn drop(&mut self) {
        drop(KEPT.take());
    }
}

/// The exploration keeps the wakers of regions, and asks one of these to stop: with nothing borrowed, for the waker may drop another.
#[test]
fn a_waker_that_drops_a_region_while_another_is_asked_to_stop_does_not_meet_it() {
    let exploration = explore_inner_stops(|| async {
        let _clears = Clears;
        let mut waits = Box::pin(timeout(LONG, async { checkpoint().await }));
        KEPT.set(Some(Box::pin(async { _ = timeout(LONG, pending::<()>()).await })));
        poll_fn(|cx| {
            let waker = foreign(cx.waker());
            let mut cx = Context::from_waker(&waker);
            KEPT.with_borrow_mut(|kept| {
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

/// Sets a hook that holds such a value; and sets another one.
type SetsHook = (fn(Replaces), fn());

/// Sets another hook when it goes.
struct Replaces(fn(), Arc<AtomicUsize>);

impl Drop for Replaces {
    fn drop(&mut self) {
        if self.1.fetch_add(1, Ordering::Relaxed) == 0 {
            (self.0)();
        }
    }
}

/// A hook is let go of without the lock that guards it: what it holds may set the next one.
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
