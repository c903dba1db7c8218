//! The cost of the ledger of permits, counted in visited entries.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use std::sync::Arc;

use convoke_core::raw::count_steps;
use convoke_sync::Semaphore;
use convoke_sync::ledger::Noting;
use convoke_task::block_on;

const WAITERS: usize = if cfg!(miri) { 40 } else { 500 };

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn recording_a_grant_does_not_visit_all_waiters() {
    let visited = count_steps(|| {
        let _noting = Noting::begin(true);
        let semaphore = Semaphore::new(1);
        let mut held = semaphore.try_acquire();
        let mut waiting: Vec<_> = (0..WAITERS).map(|_| Box::pin(semaphore.acquire())).collect();
        // The one with the highest address waits first: a search by address would take longest.
        waiting.sort_by_key(|acquire| core::cmp::Reverse(core::ptr::from_ref(&**acquire).addr()));
        assert!(waiting.iter_mut().all(|acquire| poll(acquire.as_mut()).is_pending()));
        for mut acquire in waiting {
            drop(held);
            let Poll::Ready(permit) = poll(acquire.as_mut()) else { panic!("the permit was not granted") };
            held = Some(permit);
        }
    });
    assert!(visited <= 60 * WAITERS, "{WAITERS} waiters cost {visited} visits");
}

#[test]
fn recording_a_release_does_not_visit_all_holders() {
    let visited = count_steps(|| {
        let _noting = Noting::begin(true);
        let semaphore = Semaphore::new(WAITERS * WAITERS);
        let held: Vec<_> = (1..WAITERS).map(|n| semaphore.try_acquire_many(n).unwrap()).collect();
        held.into_iter().rev().for_each(drop);
        // Released by another task than the recorded one, so all holders become doubtful.
        let semaphore = Arc::new(semaphore);
        let held = block_on(async move {
            let permits = (0..WAITERS).map(|_| semaphore.try_acquire_many_owned(1).unwrap());
            permits.collect::<Vec<_>>()
        });
        assert_eq!(held.unwrap().len(), WAITERS);
    });
    assert!(visited <= 60 * WAITERS, "{WAITERS} holders cost {visited} visits");
}
