//! The peers' single-threaded runtimes behind one trait, so that a scenario of tasks is written once, the
//! same for all.
//!
//! - tokio twice: as a `LocalRuntime`, whose `spawn_local` costs what `spawn` of a current-thread runtime
//!   does, and as a `LocalSet` on such a runtime, which spawns faster.
//! - smol's `LocalExecutor` in its leaked form.
//! - compio's executor, ticked without a driver, so that no system call falls between its ticks.
//! - monoio with its poll driver: it polls the driver between rounds of its queue, and this one is as fast as
//!   io_uring.
//! - glommio with its defaults and little memory for I/O, where it starts.
//!
//! Each runs its work as a task, because a future that only blocks a thread has a more expensive waker.

use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, ready};

use async_executor::{LocalExecutor, StaticLocalExecutor};
use futures_lite::future::{block_on, yield_now};
use tokio::runtime::{Builder, LocalRuntime, Runtime};
use tokio::task::LocalSet;

/// A runtime that uses only the calling thread.
pub(crate) trait OneThread: 'static {
    /// The handle with which tasks spawn others.
    type Spawner: Spawner;

    fn start() -> Self;

    /// Runs the future that `work` returns as a task, and all it spawns, until that future has completed.
    fn run<F>(&mut self, work: impl FnOnce(Self::Spawner) -> F) -> F::Output
    where
        F: Future + 'static;
}

/// A handle that spawns tasks on the runtime of the caller.
pub(crate) trait Spawner: Copy + 'static {
    type Task<T: 'static>: Future<Output = T> + 'static;

    fn spawn<F: Future + 'static>(self, future: F) -> Self::Task<F::Output>;

    /// Yields to the back of the queue, in the fastest way: a task that wakes itself, where that is enough.
    /// tokio's own `yield_now` takes twice as long, because it polls the driver first.
    fn yield_now(self) -> impl Future<Output = ()> {
        yield_now()
    }

    /// Waits forever, or until the runtime ends the task: where a task is not dropped from outside, something
    /// in it must be able to observe that.
    fn wait() -> impl Future<Output = ()> + 'static {
        std::future::pending()
    }

    /// Ends a task that has not completed. For most runtimes dropping the handle does that.
    fn end<T: 'static>(self, task: Self::Task<T>) {
        drop(task);
    }
}

/// A handle of a task that may fail, as one of a task that cannot.
pub(crate) struct Expect<H>(H);

impl<T, E: std::fmt::Debug, H: Future<Output = Result<T, E>> + Unpin> Future for Expect<H> {
    type Output = T;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        Poll::Ready(ready!(Pin::new(&mut self.0).poll(context)).expect("the contestant does not panic"))
    }
}

pub(crate) struct Tokio(LocalRuntime);

#[derive(Clone, Copy)]
pub(crate) struct OnTokio;

impl OneThread for Tokio {
    type Spawner = OnTokio;

    fn start() -> Self {
        let runtime = Builder::new_current_thread().build_local(Default::default());
        Self(runtime.expect("a tokio run loop starts"))
    }

    fn run<F: Future + 'static>(&mut self, work: impl FnOnce(OnTokio) -> F) -> F::Output {
        let task = self.0.spawn_local(work(OnTokio));
        self.0.block_on(Expect(task))
    }
}

impl Spawner for OnTokio {
    type Task<T: 'static> = Expect<tokio::task::JoinHandle<T>>;

    #[inline]
    fn spawn<F: Future + 'static>(self, future: F) -> Self::Task<F::Output> {
        Expect(tokio::task::spawn_local(future))
    }

    fn end<T: 'static>(self, task: Self::Task<T>) {
        task.0.abort();
    }
}

pub(crate) struct TokioLocalSet(Runtime, LocalSet);

impl OneThread for TokioLocalSet {
    type Spawner = OnTokio;

    fn start() -> Self {
        Self(super::tokio_run_loop(), LocalSet::new())
    }

    fn run<F: Future + 'static>(&mut self, work: impl FnOnce(OnTokio) -> F) -> F::Output {
        let task = self.1.spawn_local(work(OnTokio));
        self.1.block_on(&self.0, Expect(task))
    }
}

pub(crate) struct Smol(&'static StaticLocalExecutor);

impl OneThread for Smol {
    type Spawner = &'static StaticLocalExecutor;

    fn start() -> Self {
        Self(LocalExecutor::new().leak())
    }

    fn run<F: Future + 'static>(&mut self, work: impl FnOnce(Self::Spawner) -> F) -> F::Output {
        block_on(self.0.run(self.0.spawn(work(self.0))))
    }
}

impl Spawner for &'static StaticLocalExecutor {
    type Task<T: 'static> = async_executor::Task<T>;

    #[inline]
    fn spawn<F: Future + 'static>(self, future: F) -> Self::Task<F::Output> {
        StaticLocalExecutor::spawn(self, future)
    }
}

pub(crate) struct Compio(&'static compio_executor::Executor);

impl OneThread for Compio {
    type Spawner = &'static compio_executor::Executor;

    fn start() -> Self {
        Self(Box::leak(Box::default()))
    }

    fn run<F: Future + 'static>(&mut self, work: impl FnOnce(Self::Spawner) -> F) -> F::Output {
        let task = self.0.spawn(work(self.0));
        while !task.is_finished() {
            self.0.tick();
        }
        block_on(Expect(task))
    }
}

impl Spawner for &'static compio_executor::Executor {
    type Task<T: 'static> = Expect<compio_executor::JoinHandle<T>>;

    #[inline]
    fn spawn<F: Future + 'static>(self, future: F) -> Self::Task<F::Output> {
        Expect(compio_executor::Executor::spawn(self, future))
    }
}

pub(crate) struct Monoio(monoio::Runtime<monoio::LegacyDriver>);

#[derive(Clone, Copy)]
pub(crate) struct OnMonoio;

impl OneThread for Monoio {
    type Spawner = OnMonoio;

    fn start() -> Self {
        Self(monoio::RuntimeBuilder::<monoio::LegacyDriver>::new().build().expect("monoio starts"))
    }

    fn run<F: Future + 'static>(&mut self, work: impl FnOnce(OnMonoio) -> F) -> F::Output {
        self.0.block_on(async { monoio::spawn(work(OnMonoio)).await })
    }
}

impl Spawner for OnMonoio {
    type Task<T: 'static> = monoio::task::JoinHandle<T>;

    #[inline]
    fn spawn<F: Future + 'static>(self, future: F) -> Self::Task<F::Output> {
        monoio::spawn(future)
    }
}

pub(crate) struct Glommio(glommio::LocalExecutor);

impl Glommio {
    /// Returns true if it starts here: it needs io_uring and some locked memory.
    pub(crate) fn starts() -> bool {
        static STARTS: OnceLock<bool> = OnceLock::new();
        *STARTS.get_or_init(|| Self::try_start().is_some())
    }

    fn try_start() -> Option<Self> {
        glommio::LocalExecutorBuilder::default().io_memory(64 << 10).ring_depth(8).make().ok().map(Self)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct OnGlommio;

impl OneThread for Glommio {
    type Spawner = OnGlommio;

    fn start() -> Self {
        Self::try_start().expect("it started before")
    }

    fn run<F: Future + 'static>(&mut self, work: impl FnOnce(OnGlommio) -> F) -> F::Output {
        self.0.run(work(OnGlommio))
    }
}

impl Spawner for OnGlommio {
    type Task<T: 'static> = glommio::Task<T>;

    #[inline]
    fn spawn<F: Future + 'static>(self, future: F) -> Self::Task<F::Output> {
        glommio::spawn_local(future)
    }

    async fn yield_now(self) {
        glommio::executor().yield_task_queue_now().await;
    }
}
