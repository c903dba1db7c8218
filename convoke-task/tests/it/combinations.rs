//! Every executor with every outcome, time of a stop, time of a drop and fate of a handle: one table, walked whole. Whatever
//! happens, the outcome is one that may be, the body is dropped once, all frames are given back, and the scope has ended.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use convoke::alloc::{Counting, Recycling};
use convoke::env::{Changes, FrameAllocator};
use convoke::executor::ExecutorRef;
use convoke::executor::{RunLoop, Strand};
use convoke::prelude::*;
use convoke::scope::BodyOutput;
use convoke::scope::Handle;
use convoke::sender::prelude::*;
use convoke::task::stopped;

/// Where the work runs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum On {
    /// On the loop of the `sync_wait`.
    Here,
    /// On the loop of another thread.
    Loop,
    PoolOfOne,
    PoolOfTwo,
    Strand,
}

/// How the body ends, if it is left alone.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ends {
    Value,
    Error,
    Stopped,
    Panic,
}

/// When it is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
enum StopWhen {
    Never,
    BeforeStart,
    WhileItWaits,
    AtTheEnd,
}

/// When what awaits it is dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
enum DropWhen {
    Never,
    BeforeStart,
    InFlight,
}

/// Fate of the handle of the child.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Holds {
    Awaited,
    DroppedAtOnce,
    KeptUntilTheEnd,
    /// It is a task that is awaited, and no child.
    None,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    on: On,
    ends: Ends,
    stop: StopWhen,
    drop: DropWhen,
    handle: Holds,
}

/// Executors and waking thread that all rows share.
struct Bench {
    executors: [Option<ExecutorRef>; 5],
    waking: mpsc::Sender<Waker>,
}

/// Is part of the body.
struct Body(Arc<AtomicUsize>);

impl Drop for Body {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits until another thread has called the waker.
async fn wait_for_elsewhere(waking: mpsc::Sender<Waker>) {
    let mut sent = false;
    poll_fn(|cx| {
        if sent {
            return Poll::Ready(());
        }
        sent = true;
        waking.send(cx.waker().clone()).unwrap();
        Poll::Pending
    })
    .await;
}

async fn work(
    row: Row,
    body: Body,
    source: StopSource,
    waking: mpsc::Sender<Waker>,
) -> Result<u32, &'static str> {
    let _body = body;
    wait_for_elsewhere(waking).await;
    checkpoint().await;
    if row.stop == StopWhen::WhileItWaits {
        std::thread::spawn(move || source.request_stop(StopReason::Requested));
        return never().await;
    }
    if row.stop == StopWhen::AtTheEnd {
        source.request_stop(StopReason::Requested);
    }
    match row.ends {
        Ends::Value => Ok(7),
        Ends::Error => Err("no"),
        Ends::Stopped => stopped().await,
        Ends::Panic => panic!("a panic of the table"),
    }
}

/// Awaits it, or drops it before it was started, or while it runs.
async fn until<F: Future>(future: F, row: Row) -> Option<F::Output> {
    let mut future = Box::pin(future);
    match row.drop {
        DropWhen::Never => Some(future.await),
        DropWhen::BeforeStart => None,
        DropWhen::InFlight => poll_fn(|cx| Poll::Ready(as_option(future.as_mut().poll(cx)))).await,
    }
}

fn as_option<T>(poll: Poll<T>) -> Option<T> {
    match poll {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

type Output = Option<Result<u32, &'static str>>;
type Root = Pin<Box<dyn Future<Output = Output> + Send>>;

fn root(row: Row, body: Body, source: StopSource, waking: mpsc::Sender<Waker>) -> Root {
    let work = work(row, body, source, waking);
    if row.handle == Holds::None {
        return Box::pin(until(task(work).into_awaited(), row));
    }
    Box::pin(async move {
        let opened = scope(async |s| {
            let handle: Handle<_> = s.spawn_future(work);
            match row.handle {
                Holds::Awaited => Some(handle.await),
                Holds::KeptUntilTheEnd => {
                    // The scope ends when the child has ended, no matter where the handle is.
                    return Kept(None, Some(handle));
                }
                _ => None,
            }
            .map_or(Kept(None, None), |output| Kept(Some(output), None))
        });
        until(opened, row).await.and_then(|kept| {
            let Kept(output, handle) = kept;
            drop(handle);
            output
        })
    })
}

struct Kept(Output, Option<Handle<Result<u32, &'static str>>>);

impl BodyOutput for Kept {}

fn walk(row: Row, bench: &Bench) {
    let (source, dropped, frames) =
        (StopSource::new(), Arc::new(AtomicUsize::new(0)), Counting::new(Recycling));
    if row.stop == StopWhen::BeforeStart {
        source.request_stop(StopReason::Requested);
    }
    let changes = Changes::new().stop_token(source.token()).allocator(FrameAllocator::new(frames.clone()));
    let root = task(root(row, Body(dropped.clone()), source, bench.waking.clone()));
    let ended = catch_unwind(AssertUnwindSafe(|| match &bench.executors[row.on as usize] {
        None => sync_wait_with(changes, root),
        Some(executor) => sync_wait_with(changes, root.starts_on(executor)),
    }));
    let allowed = match &ended {
        Ok(Outcome::Value(Some(Ok(7)))) => row.ends == Ends::Value,
        Ok(Outcome::Value(Some(Err("no")))) => row.ends == Ends::Error,
        // Nobody asked what came of it.
        Ok(Outcome::Value(None)) => {
            row.drop != DropWhen::Never || matches!(row.handle, Holds::DroppedAtOnce | Holds::KeptUntilTheEnd)
        }
        Ok(Outcome::Stopped) => row.stop != StopWhen::Never || row.ends == Ends::Stopped,
        Err(_) => row.ends == Ends::Panic,
        _ => false,
    };
    assert!(allowed, "the outcome {ended:?}");
    drop(ended);
    assert_eq!(dropped.load(Ordering::Relaxed), 1, "times that the body was dropped");
    // A waker may still be in the hands of the thread that calls it.
    let until = Instant::now() + Duration::from_secs(20);
    while frames.live() > 0 && Instant::now() < until {
        std::thread::yield_now();
    }
    assert_eq!(frames.live(), 0, "frames that are left");
}

fn rows() -> impl Iterator<Item = Row> {
    let ons = [On::Here, On::Loop, On::PoolOfOne, On::PoolOfTwo, On::Strand];
    let ends = [Ends::Value, Ends::Error, Ends::Stopped, Ends::Panic];
    let stops = [StopWhen::Never, StopWhen::BeforeStart, StopWhen::WhileItWaits, StopWhen::AtTheEnd];
    let drops = [DropWhen::Never, DropWhen::BeforeStart, DropWhen::InFlight];
    let handles = [Holds::Awaited, Holds::DroppedAtOnce, Holds::KeptUntilTheEnd, Holds::None];
    ons.into_iter().flat_map(move |on| {
        ends.into_iter().flat_map(move |ends| {
            stops.into_iter().flat_map(move |stop| {
                drops.into_iter().flat_map(move |drop| {
                    handles.into_iter().map(move |handle| Row { on, ends, stop, drop, handle })
                })
            })
        })
    })
}

#[test]
fn every_combination_ends() {
    std::panic::set_hook(Box::new(|info| {
        if !info.payload_as_str().unwrap_or_default().contains("of the table") {
            eprintln!("{info}");
        }
    }));
    let (one, two) = (ThreadPool::new(1).unwrap(), ThreadPool::new(2).unwrap());
    let (executors, executor) = mpsc::channel();
    let looping = std::thread::spawn(move || {
        let run_loop = RunLoop::new();
        executors.send(run_loop.executor()).unwrap();
        run_loop.run();
    });
    let on_loop = executor.recv().unwrap();
    let (waking, wakers) = mpsc::channel::<Waker>();
    let wakes = std::thread::spawn(move || wakers.into_iter().for_each(Waker::wake));
    let bench = Bench {
        executors: [
            None,
            Some(ExecutorRef::new(on_loop.clone())),
            Some(ExecutorRef::new(one.executor())),
            Some(ExecutorRef::new(two.executor())),
            Some(ExecutorRef::new(Strand::new(two.executor()))),
        ],
        waking,
    };
    let mut walked = 0;
    // Miri takes half a second for a row. The step has no factor in common with the columns: all values of each are reached.
    const STEP: usize = if cfg!(miri) { 41 } else { 1 };
    for row in rows().step_by(STEP) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| walk(row, &bench))) {
            eprintln!("failed: {row:?}");
            std::panic::resume_unwind(panic);
        }
        walked += 1;
    }
    assert_eq!(walked, usize::div_ceil(5 * 4 * 4 * 3 * 4, STEP));
    on_loop.finish();
    looping.join().unwrap();
    drop(bench);
    wakes.join().unwrap();
}
