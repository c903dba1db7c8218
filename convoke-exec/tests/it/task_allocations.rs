//! Repeated work of a task takes its memory from the frame allocator, which recycles: the global allocator is not
//! asked.
use convoke::alloc::frame;
use convoke::env;
use convoke::executor::{BlockOn, RunLoop};
use convoke::prelude::*;
use convoke::task::{catch_stopped, for_each_concurrent, forever, stopped};
use convoke_testing::workshop::counting::allocations;

/// Returns how many more allocations five hundred rounds make than five.
fn of_many_rounds(round: impl AsyncFn() + Copy) -> usize {
    let made_by = |rounds: usize| {
        allocations(|| {
            let outcome = RunLoop::new().block_on(async {
                for _ in 0..rounds {
                    round().await;
                }
            });
            assert_eq!(outcome, Outcome::Value(()));
        })
    };
    if std::env::var_os("CONVOKE_FRAME_CACHE").is_some_and(|value| value == "0") {
        // The sanitizers turn the cache of frames off. Then each frame is an allocation, and there is nothing to count.
        made_by(5);
        return 0;
    }
    // Pays for what is allocated once for each thread.
    made_by(1);
    let few = made_by(5);
    made_by(if cfg!(miri) { 30 } else { 500 }) - few
}

/// A resource that closes at once.
struct Resource;

impl AsyncClose for Resource {
    type Error = std::io::Error;

    async fn close(self, _: Exit) -> Result<(), std::io::Error> {
        Ok(())
    }
}

#[test]
fn using_a_resource_allocates_nothing() {
    let closes = async || {
        let body = using(Resource, async |_| {
            checkpoint().await;
            Ok::<_, std::io::Error>(())
        });
        body.await.unwrap();
    };
    assert_eq!(of_many_rounds(closes), 0);
    let stops = async || {
        let body = using(Resource, async |_| -> std::io::Result<()> { match stopped().await {} });
        assert!(catch_stopped(body).await.is_err());
    };
    assert_eq!(of_many_rounds(stops), 0);
}

#[test]
fn ensuring_a_clean_up_allocates_nothing() {
    assert_eq!(of_many_rounds(async || ensure(async |_| {}, checkpoint()).await), 0);
}

#[test]
fn scopes_children_and_framed_futures_allocate_nothing() {
    let round = async || {
        let sum = scope(async |s| s.spawn_future(async { 1 }).await + frame(async { 2 }).await).await;
        assert_eq!(sum, 3);
    };
    assert_eq!(of_many_rounds(round), 0);
}

#[test]
fn a_changed_allocator_and_a_region_allocate_nothing() {
    let round = async || {
        let allocator = convoke::alloc::FrameAllocator::recycling();
        env::with().allocator(allocator).run(checkpoint()).await;
        shield(checkpoint()).await;
    };
    assert_eq!(of_many_rounds(round), 0);
}

#[test]
fn the_items_of_for_each_concurrent_allocate_nothing() {
    let items = |items: usize| {
        allocations(|| {
            let all = for_each_concurrent(0..items, 4, async |_| checkpoint().await);
            assert_eq!(RunLoop::new().block_on(all), Outcome::Value(()));
        })
    };
    items(10);
    let few = items(10);
    assert_eq!(items(if cfg!(miri) { 40 } else { 1000 }), few, "the lanes are reused");
}

#[test]
fn a_stopped_branch_allocates_nothing() {
    let round = async || {
        let ends = async { checkpoint().await };
        race((ends, async { forever().await })).await;
    };
    assert_eq!(of_many_rounds(round), 0);
}
