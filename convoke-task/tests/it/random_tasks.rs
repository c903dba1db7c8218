//! Random trees of tasks, scopes, handles, awaits, moves and stops, on pools, loops and strands: all of them end, every body
//! is dropped once, and every frame is given back.
//!
//! Each tree is made from a seed, which is printed with a failure: `CONVOKE_STRESS_SEED=… cargo test --test random_tasks`
//! makes the same tree again, a few hundred times. `CONVOKE_STRESS_SECONDS` says how long to go on.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use convoke::Scope;
use convoke::alloc::{Counting, Recycling};
use convoke::env::{Changes, FrameAllocator};
use convoke::executor::ExecutorRef;
use convoke::executor::{Limited, RunLoop, Strand, reschedule};
use convoke::prelude::*;
use convoke::raw::Random;
use convoke::run_on;
use convoke::sender::prelude::*;
use convoke::task::stopped;

/// Executors of the trees, and the counters that are checked at the end.
#[derive(Clone)]
struct World {
    executors: Arc<[ExecutorRef]>,
    alive: Arc<AtomicUsize>,
    ever: Arc<AtomicUsize>,
    source: StopSource,
    waking: mpsc::Sender<Kept>,
}

impl World {
    fn executor(&self, random: &mut Random) -> ExecutorRef {
        self.executors[random.below(self.executors.len())].clone()
    }

    fn body(&self) -> Body {
        self.alive.fetch_add(1, Ordering::Relaxed);
        self.ever.fetch_add(1, Ordering::Relaxed);
        Body(self.alive.clone(), Box::new(0xB0D7))
    }
}

/// Is part of each body, and must be dropped once.
struct Body(Arc<AtomicUsize>, Box<u64>);

impl Drop for Body {
    fn drop(&mut self) {
        assert_eq!(*self.1, 0xB0D7, "dropped once");
        *self.1 = 0xDEAD;
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Makes the body of a task: a few steps, some of which start other tasks.
fn node(world: World, mut random: Random, depth: u32) -> Boxed<u64> {
    Box::pin(async move {
        let _body = world.body();
        let mut sum = 1;
        for _ in 0..=random.below(4) {
            sum += step(&world, &mut random, depth).await;
        }
        sum
    })
}

async fn step(world: &World, random: &mut Random, depth: u32) -> u64 {
    let deeper = depth > 0;
    match random.below(17) {
        0 => checkpoint().await,
        1 => schedule(&world.executor(random)).await,
        2 => _ = reschedule(&world.executor(random)).await,
        3 if deeper => return task(node(world.clone(), random.split(), depth - 1)).await,
        4 if deeper => {
            let executor = world.executor(random);
            return run_on(&executor, node(world.clone(), random.split(), depth - 1)).await;
        }
        5 if deeper => {
            let caught = catch_stopped(node(world.clone(), random.split(), depth - 1)).await;
            return caught.unwrap_or(0);
        }
        6..=9 if deeper => return open(world, random, depth - 1).await,
        10 if deeper => {
            // Started and dropped in flight, as a foreign `select!` does.
            let mut future = Box::pin(open_owned(world.clone(), random.split(), depth - 1));
            poll_some(&mut future, random.below(3)).await;
        }
        11 => {
            let mut sleeping = Box::pin(sleep(Duration::from_micros(random.below(50) as u64)).into_awaited());
            poll_some(&mut sleeping, random.below(4)).await;
        }
        12 => wake_from_elsewhere(world.waking.clone()).await,
        13 if random.one_in(40) => stopped().await,
        14 if random.one_in(80) => _ = world.source.request_stop(StopReason::Requested),
        15 if random.one_in(40) => panic!("a random panic"),
        16 if deeper => {
            // Started in this task, and sent to another.
            let mut future: Boxed<u64> =
                Box::pin(task(node(world.clone(), random.split(), depth - 1)).into_awaited());
            poll_some(&mut future, 1).await;
            return task(future).on(&world.executor(random)).await;
        }
        _ => _ = just(()).await,
    }
    1
}

/// Polls the future until it is ready, at most `times` times.
async fn poll_some<F: Future + Unpin>(future: &mut F, mut times: usize) {
    poll_fn(|cx| {
        if times == 0 || Pin::new(&mut *future).poll(cx).is_ready() {
            return Poll::Ready(());
        }
        times -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Waits for a waker that is kept elsewhere, cloned there, used twice and dropped late.
async fn wake_from_elsewhere(waking: mpsc::Sender<Kept>) {
    let woken = Arc::new(AtomicUsize::new(0));
    let mut sent = false;
    poll_fn(|cx| {
        if !sent {
            sent = true;
            waking.send((cx.waker().clone(), woken.clone())).unwrap();
        }
        if woken.load(Ordering::Acquire) == 1 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// A waker, and what it is called for.
type Kept = (Waker, Arc<AtomicUsize>);

/// A thread that calls wakers.
fn wakes() -> mpsc::Sender<Kept> {
    let (send, receive) = mpsc::channel::<Kept>();
    std::thread::spawn(move || {
        for (waker, woken) in receive {
            woken.store(1, Ordering::Release);
            let again = waker.clone();
            waker.wake();
            again.wake_by_ref();
            drop(again);
        }
    });
    send
}

async fn open_owned(world: World, mut random: Random, depth: u32) -> u64 {
    open(&world, &mut random, depth).await
}

/// A scope with children of all kinds.
async fn open(world: &World, random: &mut Random, depth: u32) -> u64 {
    let (world, mut random) = (world.clone(), random.split());
    let opened: Boxed<Result<u64, u64>> = Box::pin(async move {
        let _body = world.body();
        scope(async |s: Scope<Result<u64, u64>>| {
            let _body = world.body();
            let mut handles = Vec::new();
            for _ in 0..random.below(5) {
                child(&world, &mut random, depth, &s, &mut handles);
            }
            let mut sum = 0;
            for handle in handles {
                match random.below(4) {
                    0 => drop(handle),
                    1 => {
                        handle.request_stop(StopReason::Requested);
                        sum += catch_stopped(handle).await.unwrap_or(0);
                    }
                    _ => sum += handle.await,
                }
            }
            if random.one_in(10) { Err(sum) } else { Ok(sum) }
        })
        .await
    });
    match opened.await {
        Ok(sum) | Err(sum) => sum,
    }
}

fn child(
    world: &World,
    random: &mut Random,
    depth: u32,
    s: &Scope<Result<u64, u64>>,
    handles: &mut Vec<convoke::scope::Handle<u64>>,
) {
    let future = node(world.clone(), random.split(), depth.saturating_sub(1));
    match random.below(5) {
        0 => s.spawn(async move { _ = future.await }),
        1 => {
            let fails = random.one_in(8);
            s.spawn(async move { if future.await > 0 && fails { Err(1) } else { Ok(()) } });
        }
        2 => s.child().on(&world.executor(random)).spawn(async move { _ = future.await }),
        3 => {
            let (inner, executor) = (s.clone(), world.executor(random));
            s.named("parent").spawn(async move {
                // A child that starts a sibling; the scope may have stopped by then, and not ended.
                let _ = inner.child().try_spawn(async move { _ = future.await });
                let _ = reschedule(&executor).await;
            });
        }
        _ => handles.push(s.spawn_future(future)),
    }
}

/// Makes one tree and runs it.
fn one(seed: u64, executors: &Arc<[ExecutorRef]>, waking: &mpsc::Sender<Kept>) {
    let mut random = Random::new(seed);
    let frames = Counting::new(Recycling);
    let source = StopSource::new();
    let world = World {
        executors: executors.clone(),
        alive: Arc::default(),
        ever: Arc::default(),
        source: source.clone(),
        waking: waking.clone(),
    };
    let changes = Changes::new().allocator(FrameAllocator::new(frames.clone())).stop_token(source.token());
    let root = node(world.clone(), random.split(), DEPTH);
    let root_executor = world.executor(&mut random);
    let elsewhere = random.one_in(2);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let outcome = if elsewhere {
            sync_wait_with(changes, task(root).starts_on(&root_executor))
        } else {
            sync_wait_with(changes, task(root))
        };
        drop(outcome);
    }));
    drop(result);
    assert_eq!(world.alive.load(Ordering::Relaxed), 0, "bodies are left");
    // The thread that reported the end may still be giving back the last frame, or hold a waker.
    let until = Instant::now() + Duration::from_secs(10);
    while frames.live() > 0 && Instant::now() < until {
        std::thread::yield_now();
    }
    assert_eq!(frames.live(), 0, "frames are left");
}

/// A loop on a thread of its own, until it is told to finish.
fn looping() -> (ExecutorRef, impl FnOnce()) {
    let (send, receive) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let run_loop = RunLoop::new();
        send.send(run_loop.executor()).unwrap();
        run_loop.run();
    });
    let executor = receive.recv().unwrap();
    let handle = ExecutorRef::new(executor.clone());
    (handle, move || {
        executor.finish();
        thread.join().unwrap();
    })
}

/// How long a tree may take before the test is given up.
const PATIENCE: Duration = Duration::from_secs(if cfg!(miri) { 3600 } else { 60 });

/// The height of a tree.
const DEPTH: u32 = if cfg!(miri) { 2 } else { 3 };

/// The number of trees under Miri, where a tree takes seconds.
const FEW: usize = 4;

/// Runs the trees. A second thread reports the seed of a tree that hangs.
fn watched(executors: Arc<[ExecutorRef]>, seeds: impl Iterator<Item = u64>) -> u64 {
    let (begins, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut last = None;
        loop {
            match told.recv_timeout(PATIENCE) {
                Ok(seed) => last = Some(seed),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    eprintln!("the tree of CONVOKE_STRESS_SEED={last:?} has not ended for a minute");
                    std::process::abort();
                }
            }
        }
    });
    let (mut trees, waking) = (0, wakes());
    for seed in seeds {
        begins.send(seed).unwrap();
        let result =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| one(seed, &executors, &waking)));
        if let Err(panic) = result {
            eprintln!("failed: CONVOKE_STRESS_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
        trees += 1;
    }
    trees
}

#[test]
fn random_trees_end() {
    // Panics are part of it; their messages are not.
    std::panic::set_hook(Box::new(|info| {
        let text = info.payload_as_str().unwrap_or_default();
        if !text.contains("a random panic") {
            eprintln!("{info}");
        }
    }));
    let read = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let (small, large) = (ThreadPool::new(1).unwrap(), ThreadPool::new(2).unwrap());
    let ((one_loop, end_one), (other_loop, end_other)) = (looping(), looping());
    let executors: Arc<[ExecutorRef]> = [
        ExecutorRef::new(small.executor()),
        ExecutorRef::new(large.executor()),
        ExecutorRef::new(Strand::new(large.executor())),
        ExecutorRef::new(Strand::new(one_loop.clone())),
        ExecutorRef::new(Limited::new(&one_loop, 2)),
        one_loop,
        other_loop,
    ]
    .into();
    let trees = match read("CONVOKE_STRESS_SEED") {
        Some(seed) => watched(executors, std::iter::repeat_n(seed, 300)),
        None if cfg!(miri) => watched(executors, (0..).take(FEW)),
        None => {
            let until = Instant::now() + Duration::from_secs(read("CONVOKE_STRESS_SECONDS").unwrap_or(5));
            let first = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
            let first = u64::from(first.subsec_nanos()) << 20;
            eprintln!("from seed {first}");
            watched(executors, (first..).take_while(|_| Instant::now() < until))
        }
    };
    end_one();
    end_other();
    eprintln!("{trees} trees");
    assert!(trees > 0);
}
