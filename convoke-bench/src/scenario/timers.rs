//! A million timers: tasks that sleep, and timers that are cancelled before their time, as most timeouts are.
//!
//! Processor time is measured, not wall time: work that sleeps costs what it computes. All contestants use
//! the same sequence of random durations. A batch has a million; in tests it is fewer.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use convoke::alloc::FrameAllocator;
use convoke::env::Changes;
use convoke::raw::Random;
use convoke::time::sleep;

use super::{Bytes, CONVOKE, Scenario, Unit};
use crate::allocator::Weighing;
use crate::measure::ProcessorTime;
use crate::own::{InScope, run_with};
use crate::peer::{Glommio, Timed, TimedGlommio, TimedMonoio, TimedSmol, TimedTokio};

const TIMERS: u64 = if cfg!(test) { 500 } else { 1_000_000 };

/// The seed of the durations, the same for all.
const SEED: u64 = 1;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "timers_fire",
            "start a task that sleeps, one of a million, until it has woken and ended: processor time",
        )
        .batch(TIMERS)
        .contestant(CONVOKE, || fire::<Convoke>)
        .contestant("tokio", || fire::<TimedTokio>)
        .contestant("smol", || fire::<TimedSmol>)
        .contestant("monoio", || fire::<TimedMonoio>)
        .contestant_if(Glommio::starts(), "glommio", || fire::<TimedGlommio>),
        // glommio counts the wakers of a task in 15 bits.
        Scenario::new(
            "timers_cancel",
            "begin to sleep and give it up, with a million other sleeps around: processor time",
        )
        .batch(TIMERS)
        .contestant(CONVOKE, || cancel::<Convoke>)
        .contestant("tokio", || cancel::<TimedTokio>)
        .contestant("smol", || cancel::<TimedSmol>)
        .contestant("monoio", || cancel::<TimedMonoio>),
        Scenario::new("timers_bytes", "the memory of a task that sleeps, one of a million")
            .batch(TIMERS)
            .unit(Unit::Bytes)
            .contestant(CONVOKE, || weigh::<InSystemMemory>)
            .contestant("tokio", || weigh::<TimedTokio>)
            .contestant("smol", || weigh::<TimedSmol>)
            .contestant("monoio", || weigh::<TimedMonoio>)
            .contestant_if(Glommio::starts(), "glommio", || weigh::<TimedGlommio>),
    ]
}

/// Convoke's run loop. Each run starts a new one, because each has its own scope.
struct Convoke;

impl Timed for Convoke {
    type Starter = InScope;

    fn with_timers() -> Self {
        Self
    }

    fn run<F: Future + 'static>(&mut self, work: impl FnOnce(InScope) -> F) -> F::Output {
        run_with(Changes::new(), work)
    }

    #[inline]
    fn start(starter: InScope, task: impl Future<Output = ()> + 'static) {
        starter.start(task);
    }

    #[inline]
    fn sleep(duration: Duration) -> impl Future<Output = ()> + 'static {
        sleep(duration).into_future()
    }
}

/// Convoke with frames from the system, without the recycling allocator, which would hide what a task takes.
struct InSystemMemory;

impl Timed for InSystemMemory {
    type Starter = InScope;

    fn with_timers() -> Self {
        Self
    }

    fn run<F: Future + 'static>(&mut self, work: impl FnOnce(InScope) -> F) -> F::Output {
        run_with(Changes::new().allocator(FrameAllocator::system()), work)
    }

    fn start(starter: InScope, task: impl Future<Output = ()> + 'static) {
        Convoke::start(starter, task);
    }

    #[inline]
    fn sleep(duration: Duration) -> impl Future<Output = ()> + 'static {
        Convoke::sleep(duration)
    }
}

/// Tasks that sleep for half a second to one second: on a fast machine nearly all exist before the first
/// wakes, and a sample does not take long.
fn fire<R: Timed>(ops: u64) -> Duration {
    let mut runtime = R::with_timers();
    batches(ops, || {
        runtime.run(|starter| async move {
            let begin = ProcessorTime::begin();
            let left = start_all::<R>(starter);
            left.wait().await;
            begin.end()
        })
    })
    .sum()
}

/// Weighs sleeping tasks, when all have been started and polled once.
fn weigh<R: Timed>(ops: u64) -> Bytes {
    let mut runtime = R::with_timers();
    let bytes = batches(ops, || {
        runtime.run(|starter| async move {
            let weighing = Weighing::begin();
            let left = start_all::<R>(starter);
            left.begun().await;
            let bytes = weighing.end();
            left.wait().await;
            bytes
        })
    });
    Bytes(bytes.sum())
}

fn batches<T>(ops: u64, mut batch: impl FnMut() -> T) -> impl Iterator<Item = T> {
    (0..ops / TIMERS).map(move |_| batch())
}

fn start_all<R: Timed>(starter: R::Starter) -> Rc<TaskCounts> {
    let left = Rc::new(TaskCounts::new(TIMERS));
    let mut random = Random::new(SEED);
    let at_least = if cfg!(test) { Duration::from_millis(1) } else { Duration::from_millis(500) };
    for _ in 0..TIMERS {
        let duration = at_least + random.between(&(Duration::ZERO..at_least));
        let left = Rc::clone(&left);
        R::start(starter, async move {
            left.not_begun.count_down();
            R::sleep(duration).await;
            left.not_ended.count_down();
        });
    }
    left
}

/// Background tasks sleep for one to two minutes. The measured timers, of one to two seconds, are started and
/// cancelled one by one, like the timeout of work that was in time.
fn cancel<R: Timed>(ops: u64) -> Duration {
    let mut runtime = R::with_timers();
    batches(ops, || {
        runtime.run(|_| async move {
            let mut random = Random::new(SEED);
            let minute = Duration::from_secs(60);
            let mut around: Vec<_> = (0..TIMERS)
                .map(|_| Box::pin(R::sleep(minute + random.between(&(Duration::ZERO..minute)))))
                .collect();
            for sleep in &mut around {
                begin(sleep.as_mut()).await;
            }
            let second = Duration::from_secs(1);
            let time = ProcessorTime::begin();
            for _ in 0..TIMERS {
                let sleep = pin!(R::sleep(second + random.between(&(Duration::ZERO..second))));
                begin(sleep).await;
            }
            time.end()
        })
    })
    .sum()
}

/// Polls a future once.
async fn begin(mut sleep: Pin<&mut impl Future<Output = ()>>) {
    poll_fn(|context| {
        assert!(sleep.as_mut().poll(context).is_pending());
        Poll::Ready(())
    })
    .await;
}

/// The numbers of tasks that have not started and have not ended; one task waits for each to reach zero.
struct TaskCounts {
    not_begun: CountDown,
    not_ended: CountDown,
}

struct CountDown {
    left: Cell<u64>,
    waker: RefCell<Option<Waker>>,
}

impl TaskCounts {
    fn new(count: u64) -> Self {
        let count_down = || CountDown { left: Cell::new(count), waker: RefCell::new(None) };
        Self { not_begun: count_down(), not_ended: count_down() }
    }

    async fn begun(&self) {
        self.not_begun.wait().await;
    }

    async fn wait(&self) {
        self.not_ended.wait().await;
    }
}

impl CountDown {
    #[inline]
    fn count_down(&self) {
        self.left.set(self.left.get() - 1);
        if self.left.get() == 0
            && let Some(waker) = self.waker.take()
        {
            waker.wake();
        }
    }

    async fn wait(&self) {
        poll_fn(|context| {
            if self.left.get() == 0 {
                return Poll::Ready(());
            }
            self.waker.replace(Some(context.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}
