//! Hyper's timers by the clock of the current task.

use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::PoisonError;
use std::time::Instant;

use convoke_core::raw::sync::Mutex;
use convoke_exec::time::{self, Sleeping};
use hyper::rt::{Sleep, Timer};

/// A timer for hyper, by the clock of the task that runs the connection. In a simulation and in a test with virtual
/// time that is not the clock of the machine.
///
/// Its sleeps are those of Convoke: they panic outside a task, and end as stopped if the task does.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConvokeTimer;

impl Timer for ConvokeTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(SyncSleep::new(time::sleep(duration).into_future()))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(SyncSleep::new(time::sleep_until(deadline).into_future()))
    }

    fn now(&self) -> Instant {
        time::now()
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<SyncSleep>() {
            Some(sleep) => sleep.get_mut().sleeping().reset(deadline),
            None => *sleep = self.sleep_until(deadline),
        }
    }
}

/// A sleep that can be shared, as hyper asks for, and that is never shared: the lock is never taken.
struct SyncSleep {
    sleeping: Mutex<Pin<Box<Sleeping>>>,
}

impl SyncSleep {
    fn new(sleeping: Sleeping) -> Self {
        Self { sleeping: Mutex::new(Box::pin(sleeping)) }
    }

    fn sleeping(&mut self) -> Pin<&mut Sleeping> {
        self.sleeping.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut()
    }
}

impl Future for SyncSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.get_mut().sleeping().poll(cx)
    }
}

impl Sleep for SyncSleep {}
