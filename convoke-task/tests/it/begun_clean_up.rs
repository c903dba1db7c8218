//! Resources in futures that lose before they were polled, and clean-up that has begun when a stop comes.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use convoke::cleanup::{AsyncClose, Exit};
use convoke::prelude::*;
use convoke::task::{generator, stoppable};
use convoke::testing;

const SECOND: Duration = Duration::from_secs(1);

/// A resource that counts how often it was closed.
struct Counted(Arc<AtomicUsize>);

impl AsyncClose for Counted {
    type Error = Never;

    async fn close(self, _: Exit) -> Result<(), Never> {
        sleep(SECOND).await;
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

async fn waits(resource: Counted) -> u32 {
    using(resource, async |_| {
        sleep(100 * SECOND).await;
        1
    })
    .await
}

#[test]
fn a_resource_in_a_branch_that_lost_before_it_was_polled_is_closed() {
    testing::run(async {
        let closed = Arc::new(AtomicUsize::new(0));
        let resource = || Counted(closed.clone());
        let in_use = || {
            using(resource(), async |_| {
                sleep(100 * SECOND).await;
                1
            })
        };
        assert_eq!(race((async { 7 }, in_use(), waits(resource()))).await, 7);
        assert_eq!(closed.swap(0, Ordering::Relaxed), 2, "race");
        let fails = async { Err::<u32, _>("no") };
        let ok = async |resource| Ok::<_, &str>(waits(resource).await);
        assert_eq!(try_join((fails, ok(resource()))).await, Err("no"));
        assert_eq!(closed.swap(0, Ordering::Relaxed), 1, "try_join");
        type Boxed<'a> = std::pin::Pin<Box<dyn Future<Output = u32> + Send + 'a>>;
        let branches: Vec<Boxed<'_>> = vec![Box::pin(async { 7 }), Box::pin(in_use())];
        assert_eq!(race(branches).await, 7);
        assert_eq!(closed.swap(0, Ordering::Relaxed), 1, "race of a vector");
        let stops = async {
            convoke::task::stopped().await;
        };
        let caught = catch_stopped(async { join((stops, in_use())).await }).await;
        assert!(caught.is_err());
        assert_eq!(closed.swap(0, Ordering::Relaxed), 1, "join");
    });
}

#[test]
fn a_resource_whose_use_is_dropped_before_it_was_polled_is_reported() {
    let reported = Arc::new(AtomicUsize::new(0));
    let counts = reported.clone();
    convoke::cleanup::set_cleanup_hook(move |_| {
        counts.fetch_add(1, Ordering::Relaxed);
    });
    let closed = Arc::new(AtomicUsize::new(0));
    drop(using(Counted(closed.clone()), async |_| ()));
    assert_eq!((reported.load(Ordering::Relaxed), closed.load(Ordering::Relaxed)), (1, 0));
}

#[test]
fn stoppable_does_not_cut_a_clean_up_that_has_begun() {
    testing::run(async {
        let closed = Arc::new(AtomicUsize::new(0));
        // The body has ended before the stop comes, and the clean-up waits.
        let ended = using(Counted(closed.clone()), async |_| ());
        assert!(
            timeout(SECOND / 2, stoppable(ended)).await.is_ok(),
            "the result is there when it has closed"
        );
        assert_eq!(closed.swap(0, Ordering::Relaxed), 1);
        // The stop ends the body, and the clean-up begins.
        assert!(timeout(SECOND, stoppable(waits(Counted(closed.clone())))).await.is_err());
        assert_eq!(closed.load(Ordering::Relaxed), 1);
        // A foreign future beside it gives way, when the clean-up has ended.
        let both = join((waits(Counted(closed.clone())), std::future::pending::<()>()));
        assert!(timeout(SECOND, stoppable(both)).await.is_err());
        assert_eq!(closed.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn a_timeout_around_next_does_not_end_the_generator() {
    testing::run(async {
        let mut numbers = generator(async |y| {
            for n in 1_u32..=3 {
                sleep(2 * SECOND).await;
                y.yield_value(n).await;
            }
        });
        let mut seen = Vec::new();
        let mut elapsed = 0;
        loop {
            match timeout(SECOND, numbers.next()).await {
                Ok(Some(n)) => seen.push(n),
                Ok(None) => break,
                Err(_) => elapsed += 1,
            }
        }
        assert_eq!((seen, elapsed), (vec![1, 2, 3], 3));
    });
}

#[test]
fn a_stop_of_the_consumer_still_reaches_the_body_of_its_generator() {
    testing::run(async {
        let closed = Arc::new(AtomicUsize::new(0));
        let resource = Counted(closed.clone());
        let consumes = async move {
            let mut numbers = generator(async move |y| {
                using(resource, async |_| {
                    y.yield_value(1).await;
                    sleep(100 * SECOND).await;
                })
                .await;
            });
            // The inner timeout does not elapse: the outer one asks the consumer.
            while timeout(50 * SECOND, numbers.next()).await.is_ok_and(|next| next.is_some()) {}
        };
        assert!(timeout(SECOND, consumes).await.is_err());
        assert_eq!(closed.load(Ordering::Relaxed), 1);
    });
}
