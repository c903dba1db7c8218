//! The single-threaded runtimes with their timers, which the other scenarios leave off.
//!
//! - tokio's `LocalRuntime` with its time driver.
//! - smol's `LocalExecutor` under async-io's `block_on`, which is how smol's own `block_on` drives timers.
//! - monoio with its timer wheel, over the poll driver.
//! - glommio with its defaults.
//!
//! Each starts a task without a handle in the way that costs it least.

use std::future::Future;
use std::time::{Duration, Instant};

use async_executor::{LocalExecutor, StaticLocalExecutor};
use tokio::runtime::{Builder, LocalRuntime};

use super::Glommio;
use super::one_thread::OneThread;

/// A single-threaded runtime with timers.
pub(crate) trait Timed: 'static {
    /// The handle with which the work starts tasks.
    type Starter: Copy + 'static;

    fn with_timers() -> Self;

    /// Runs the future that `work` returns, and the tasks it starts, until that future has completed.
    fn run<F>(&mut self, work: impl FnOnce(Self::Starter) -> F) -> F::Output
    where
        F: Future + 'static;

    /// Starts a task without a handle.
    fn start(starter: Self::Starter, task: impl Future<Output = ()> + 'static);

    fn sleep(duration: Duration) -> impl Future<Output = ()> + 'static;
}

pub(crate) struct TimedTokio(LocalRuntime);

impl Timed for TimedTokio {
    type Starter = ();

    fn with_timers() -> Self {
        let runtime = Builder::new_current_thread().enable_time().build_local(Default::default());
        Self(runtime.expect("a tokio run loop starts"))
    }

    fn run<F: Future + 'static>(&mut self, work: impl FnOnce(()) -> F) -> F::Output {
        let task = self.0.spawn_local(work(()));
        self.0.block_on(task).expect("the contestant does not panic")
    }

    #[inline]
    fn start((): (), task: impl Future<Output = ()> + 'static) {
        drop(tokio::task::spawn_local(task));
    }

    #[inline]
    fn sleep(duration: Duration) -> impl Future<Output = ()> + 'static {
        tokio::time::sleep(duration)
    }
}

pub(crate) struct TimedSmol(&'static StaticLocalExecutor);

impl Timed for TimedSmol {
    type Starter = &'static StaticLocalExecutor;

    fn with_timers() -> Self {
        Self(LocalExecutor::new().leak())
    }

    fn run<F: Future + 'static>(&mut self, work: impl FnOnce(Self::Starter) -> F) -> F::Output {
        async_io::block_on(self.0.run(self.0.spawn(work(self.0))))
    }

    #[inline]
    fn start(starter: Self::Starter, task: impl Future<Output = ()> + 'static) {
        starter.spawn(task).detach();
    }

    #[inline]
    fn sleep(duration: Duration) -> impl Future<Output = ()> + 'static {
        let timer = async_io::Timer::after(duration);
        async {
            let _: Instant = timer.await;
        }
    }
}

pub(crate) struct TimedMonoio(monoio::Runtime<monoio::time::TimeDriver<monoio::LegacyDriver>>);

impl Timed for TimedMonoio {
    type Starter = ();

    fn with_timers() -> Self {
        let builder = monoio::RuntimeBuilder::<monoio::LegacyDriver>::new();
        Self(builder.enable_timer().build().expect("monoio starts"))
    }

    fn run<F: Future + 'static>(&mut self, work: impl FnOnce(()) -> F) -> F::Output {
        self.0.block_on(async { monoio::spawn(work(())).await })
    }

    #[inline]
    fn start((): (), task: impl Future<Output = ()> + 'static) {
        drop(monoio::spawn(task));
    }

    #[inline]
    fn sleep(duration: Duration) -> impl Future<Output = ()> + 'static {
        monoio::time::sleep(duration)
    }
}

pub(crate) struct TimedGlommio(Glommio);

impl Timed for TimedGlommio {
    type Starter = ();

    fn with_timers() -> Self {
        Self(Glommio::start())
    }

    fn run<F: Future + 'static>(&mut self, work: impl FnOnce(()) -> F) -> F::Output {
        self.0.run(|_| work(()))
    }

    #[inline]
    fn start((): (), task: impl Future<Output = ()> + 'static) {
        glommio::spawn_local(task).detach();
    }

    #[inline]
    fn sleep(duration: Duration) -> impl Future<Output = ()> + 'static {
        glommio::timer::sleep(duration)
    }
}
