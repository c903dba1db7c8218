//! All memory that a task needs comes from its frame allocator. The programs below run in a task whose allocator has a
//! fixed amount of memory of its own, and count what is taken from the global allocator meanwhile.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::process::Command;
use std::time::Duration;

use convoke::alloc::{Bounded, Counting, FrameAllocator, frame, frame_dyn};
use convoke::cleanup::cleanups;
use convoke::env::{self, Changes, Local, current, with_local};
use convoke::executor::{BlockOn, RunLoop, reschedule};
use convoke::prelude::*;
use convoke::retry::{Backoff, retry};
use convoke::run_on;
use convoke::scope::policy::{Supervise, WaitForAll};
use convoke::scope::scope_with;
use convoke::sender::algorithm::schedule::schedule;
use convoke::sender::counting_scope::CountingScope;
use convoke::sender::prelude::*;
use convoke::task::{
    for_each_concurrent, forever, generator, map_concurrent, run_until_stopped, stopped, sync_generator,
};
use convoke_testing::workshop::counting::allocated;

static KEY: Local<u64> = Local::inherited("key");

/// A future as a shape has it.
type Shape = std::pin::Pin<Box<dyn Future<Output = ()>>>;

/// A name, the number of allocations that are the program's own, and what is run.
type Row = (&'static str, usize, fn() -> Shape);

/// Runs a shape, and returns how often it asked the global allocator, and how often that of its task.
fn asked_for(shape: fn() -> Shape) -> (usize, usize) {
    let memory = Counting::new(Bounded::new(1 << 20));
    let changes = || Changes::new().allocator(FrameAllocator::new(memory.clone()));
    let counted = Cell::new((0, 0));
    let run = || {
        let main = RunLoop::new();
        let shape = shape();
        let body = async {
            let before = (allocated(), memory.total());
            let mut shape = shape;
            // Polled in place: the box of the shape is the test's own, and stays.
            shape.as_mut().await;
            counted.set((allocated() - before.0, memory.total() - before.1));
        };
        assert_eq!(main.block_on_with(changes(), body), Outcome::Value(()));
    };
    // Pays for what is allocated once for each thread.
    run();
    run();
    assert_eq!(memory.live(), 0, "all memory went back");
    assert_eq!(memory.refused(), 0, "there was enough");
    counted.get()
}

struct Resource;

impl AsyncClose for Resource {
    type Error = Never;

    async fn close(self, _: Exit) -> Result<(), Never> {
        checkpoint().await;
        Ok(())
    }
}

async fn uses_a_resource() {
    using(Resource, async |_| checkpoint().await).await;
}

async fn ensures() {
    ensure(async |_| checkpoint().await, checkpoint()).await;
}

async fn cleans_up() {
    let body = cleanups(async |c| {
        let _resource = c.push(Resource);
        c.ensure(async |_| checkpoint().await);
        checkpoint().await;
        Ok::<_, Never>(())
    });
    body.await.unwrap();
}

/// Asks for the environment inside a region, whose stop token is its own.
async fn hands_out_tokens() {
    shield(async { assert!(!current::stop_token().stop_requested()) }).await;
    let token = async { current::stop_token() };
    assert!(timeout(Duration::from_secs(9), token).await.unwrap().deadline().is_some());
}

async fn makes_stop_sources() {
    let source = StopSource::new();
    let child = source.token().child();
    let ended = race((async { child.token().stopped().await }, async {
        checkpoint().await;
        source.request_stop(StopReason::Shutdown);
        forever().await
    }));
    assert_eq!(ended.await, StopReason::Shutdown);
}

async fn is_stopped_by_a_token() {
    let source = StopSource::new();
    let asks = async {
        checkpoint().await;
        source.request_stop(StopReason::Requested);
    };
    let (ended, ()) = join((run_until_stopped(source.token(), async { forever().await }), asks)).await;
    assert!(ended.is_err());
}

async fn sets_locals() {
    with_local(&KEY, 7, async { assert_eq!(current::local(&KEY), Some(7)) }).await;
    env::with().local(&KEY, 8).run(checkpoint()).await;
}

async fn joins() {
    join((checkpoint(), checkpoint())).await;
    race((checkpoint(), checkpoint())).await;
    let ended = catch_stopped(async { stopped().await }).await;
    assert!(ended.is_err());
}

async fn selects() {
    convoke::select! {
        () = checkpoint() => {}
        _ = forever() => {}
    }
}

/// The vectors of futures and of values are the program's.
async fn joins_a_vector() {
    let all = (0..9).map(async |n| {
        checkpoint().await;
        n
    });
    assert_eq!(join(all.collect::<Vec<_>>()).await.len(), 9);
}

async fn runs_concurrently() {
    for_each_concurrent(0..99, 4, async |_| checkpoint().await).await;
}

async fn maps_concurrently() {
    let mut mapped = pin!(map_concurrent(0..99, 4, async |n| {
        checkpoint().await;
        n
    }));
    let mut sum = 0;
    while let Some(n) = mapped.next().await {
        sum += n;
    }
    assert_eq!(sum, 4851);
}

async fn opens_scopes() {
    let sum = scope(async |s| {
        s.spawn(checkpoint());
        s.spawn_future(async { 1 }).await + frame(async { 2 }).await + frame_dyn(async { 3 }).await
    });
    assert_eq!(sum.await, 6);
}

async fn opens_local_scopes() {
    let one = Cell::new(1);
    let sum = convoke::scope::local_scope_not_send(async |s| {
        s.spawn(async { one.set(2) });
        s.spawn_future(async { 1 }).await
    });
    assert_eq!(sum.await, 1);
    assert_eq!(one.get(), 2);
    local_scope(async |s| s.spawn(checkpoint())).await;
}

async fn opens_scopes_with_policies() {
    let done = scope_with(WaitForAll, async |s| {
        s.spawn(async {
            checkpoint().await;
            Ok::<_, Never>(())
        });
        Ok(())
    });
    done.await.unwrap();
    let served = scope_with(Supervise, async |s| {
        s.spawn(async {
            checkpoint().await;
            Ok::<_, Never>(())
        });
        Ok(())
    });
    served.await;
}

async fn takes_results() {
    let ready = scope(async |s| {
        let mut results = s.results();
        for n in 0..3 {
            results.spawn(async move { n });
        }
        while results.next().await.is_some() {}
        s.child().spawn_until_ready(async |ready| ready.report(1)).await
    });
    assert_eq!(ready.await, Ok(1));
}

async fn generates() {
    let mut numbers = generator(async |y| {
        for n in 0..9 {
            y.yield_value(n).await;
        }
    });
    while numbers.next().await.is_some() {}
    assert_eq!(sync_generator(async |y| y.yield_value(1).await).count(), 1);
}

async fn retries() {
    let tried = Cell::new(0);
    let done = retry(Backoff::constant(Duration::ZERO).up_to(3), async || {
        tried.set(tried.get() + 1);
        if tried.get() < 3 { Err("again") } else { Ok(()) }
    });
    done.await.unwrap();
}

async fn awaits_tasks() {
    let n = task(async {
        checkpoint().await;
        1
    });
    assert_eq!(n.await, 1);
    assert_eq!(try_task(async { Ok::<_, Never>(2) }).await, 2);
    let executor = current::executor();
    assert_eq!(run_on(&executor, async { 3 }).await, 3);
    reschedule(&executor).await.unwrap();
}

async fn boxes_senders() {
    assert_eq!(just(1).then(|n| n + 1).boxed().await, 2);
    let executor = current::executor();
    assert_eq!(schedule(&executor).then(|()| 5).boxed().await, 5);
}

async fn splits_senders() {
    let answer = just_from(|| 42).split();
    assert_eq!(answer.clone().await, 42);
    assert_eq!(when_all((answer.clone(), answer)).await, (42, 42));
}

/// The vectors of senders and of values are the program's.
async fn gathers_a_vector() {
    let executor = current::executor();
    let all = (0..9).map(|n| schedule(&executor).then(move |()| n));
    assert_eq!(when_all(all.collect::<Vec<_>>()).await.len(), 9);
}

/// The vector of senders is the program's.
async fn races_a_vector() {
    let executor = current::executor();
    let all = (0..9).map(|n| schedule(&executor).then(move |()| n));
    assert!(when_any(all.collect::<Vec<_>>()).await < 9);
}

async fn counts_senders() {
    let scope = CountingScope::new();
    scope.handle().spawn(just(()), &current::env(|env| env.unwrap().clone())).unwrap();
    scope.join().await;
}

/// Beside this thread, a second runner takes part.
async fn calls_in_bulk() {
    let executor = current::executor();
    schedule(&executor).bulk(9, |_, ()| {}).await;
}

async fn sleeps() {
    sleep(Duration::from_nanos(1)).await;
    assert!(timeout(Duration::from_nanos(1), async { forever().await }).await.is_err());
}

const SHAPES: &[Row] = &[
    ("using", 0, || Box::pin(uses_a_resource())),
    ("ensure", 0, || Box::pin(ensures())),
    ("cleanups", 0, || Box::pin(cleans_up())),
    ("regions", 0, || Box::pin(hands_out_tokens())),
    ("stop sources", 0, || Box::pin(makes_stop_sources())),
    ("run_until_stopped", 0, || Box::pin(is_stopped_by_a_token())),
    ("locals", 0, || Box::pin(sets_locals())),
    ("join, race, catch_stopped", 0, || Box::pin(joins())),
    ("select!", 0, || Box::pin(selects())),
    ("join(vec)", 2, || Box::pin(joins_a_vector())),
    ("for_each_concurrent", 0, || Box::pin(runs_concurrently())),
    ("map_concurrent", 0, || Box::pin(maps_concurrently())),
    ("scope", 0, || Box::pin(opens_scopes())),
    ("local_scope", 0, || Box::pin(opens_local_scopes())),
    ("scope_with", 0, || Box::pin(opens_scopes_with_policies())),
    ("results, spawn_until_ready", 0, || Box::pin(takes_results())),
    ("generators", 0, || Box::pin(generates())),
    ("retry", 0, || Box::pin(retries())),
    ("task, run_on, reschedule", 0, || Box::pin(awaits_tasks())),
    ("boxed", 0, || Box::pin(boxes_senders())),
    ("split", 0, || Box::pin(splits_senders())),
    ("when_all(vec)", 2, || Box::pin(gathers_a_vector())),
    ("when_any(vec)", 1, || Box::pin(races_a_vector())),
    ("bulk", 0, || Box::pin(calls_in_bulk())),
    ("CountingScope", 0, || Box::pin(counts_senders())),
    ("sleep, timeout", 0, || Box::pin(sleeps())),
];

/// Runs in a process of its own, without the cache of the default allocator: what is taken from that would not show
/// otherwise.
#[test]
fn all_memory_of_a_task_comes_from_its_allocator() {
    if std::env::var_os("CONVOKE_FRAME_CACHE").is_none_or(|value| value != "0") {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "task_memory::all_memory_of_a_task_comes_from_its_allocator"]);
        let output = again.env("CONVOKE_FRAME_CACHE", "0").output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}");
        return;
    }
    let mut wrong = Vec::new();
    for (name, own, shape) in SHAPES {
        let (global, frames) = asked_for(*shape);
        if global != *own {
            wrong.push(format!(
                "{name}: {global} of the global allocator, where {own} are the program's; {frames} frames"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
