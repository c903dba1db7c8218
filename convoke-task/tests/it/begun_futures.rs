//! A future that has started writes through references to its own parts, while it is polled and when it is dropped. Its holder must not
//! read it through a shared reference in between: Miri reports it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use convoke::alloc::{frame, frame_dyn};
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::{for_each_concurrent, generator, stoppable};
use convoke::time::stop_after;

/// Counts its polls in a part of itself, and is polled at least five times.
async fn begun() -> u32 {
    let mut polls = 0;
    let counted = Counted(&mut polls);
    poll_fn(|cx| {
        *counted.0 += 1;
        if *counted.0 == 5 {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    let polls = *counted.0;
    drop(counted);
    polls
}

/// Writes when it goes, too.
struct Counted<'a>(&'a mut u32);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        *self.0 += 1;
    }
}

/// Runs what `make` makes, to its end, and a second time for a few polls before it is dropped.
#[track_caller]
fn runs<F: Future<Output = u32> + Send>(make: impl Fn() -> F + Send + Sync) {
    let ran = sync_wait(task(async {
        {
            let mut dropped = pin!(make());
            for _ in 0..3 {
                poll_fn(|cx| Poll::Ready(_ = dropped.as_mut().poll(cx))).await;
                checkpoint().await;
            }
        }
        make().await
    }));
    assert_eq!(ran, Outcome::Value(5));
}

const LONG: Duration = Duration::from_secs(3600);

#[test]
fn in_limits() {
    runs(|| async { timeout(LONG, begun()).await.unwrap() });
    runs(|| stop_after(LONG, begun()));
    runs(|| shield(begun()));
    runs(|| shield(begun()).grace(LONG));
    runs(|| async { catch_stopped(begun()).await.unwrap() });
    runs(|| stoppable(begun()));
}

#[test]
fn in_scopes() {
    runs(|| async { scope(async |_| begun().await).await });
    runs(|| async { scope(async |s| s.spawn_future(begun()).await).await });
    runs(|| async { local_scope(async |_| begun().await).await });
    runs(|| async { local_scope(async |s| s.spawn_future(begun()).await).await });
}

#[test]
fn beside_others() {
    runs(|| async { join((begun(), begun())).await.0 });
    runs(|| async { join(vec![begun(), begun()]).await[1] });
    runs(|| async { try_join((async { Ok::<_, ()>(begun().await) }, begun_well())).await.unwrap().0 });
    runs(|| race((begun(), begun())));
    runs(|| async {
        for_each_concurrent(0..3, 2, async |_| assert_eq!(begun().await, 5)).await;
        5
    });
}

async fn begun_well() -> Result<u32, ()> {
    Ok(begun().await)
}

#[test]
fn in_memory_of_their_own() {
    runs(|| frame(begun()));
    runs(|| frame_dyn(begun()));
    runs(|| async {
        let mut values = generator(async |y| {
            y.yield_value(begun().await).await;
        });
        values.next().await.unwrap()
    });
    runs(|| async {
        let values = generator(async |y| {
            y.yield_value(begun().await).await;
        });
        let mut values = values.erased();
        values.next().await.unwrap()
    });
}

#[test]
fn with_clean_up() {
    runs(|| ensure(async |_| _ = begun().await, begun()));
}
