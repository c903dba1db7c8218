//! `StopHandle`: asks one task to stop, apart from the handle that awaits it.

use convoke_core::raw::FrameArc;
use core::fmt;
use core::task::Waker;

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::raw::wake_if_any;
use convoke_core::{StopReason, StopSource};

use crate::task::Asker;

/// Asks one task to stop. Cheap to clone, and may go to any thread. Returned by the method `stop_handle` of
/// every handle, such as [`Handle::stop_handle`](crate::scope::Handle::stop_handle).
///
/// It keeps neither the task running nor its result: when the handle is dropped the task is asked to stop, though
/// there are stop handles. After the task has ended, a request has no effect.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::task::forever;
///
/// let outcome = block_on(async {
///     scope(async |s| {
///         let child = s.spawn_future(async { forever().await });
///         let stop = child.stop_handle();
///         s.spawn(async move { stop.request_stop(StopReason::Named("reload")) });
///         catch_stopped(child).await.map_err(|stopped: Stopped| stopped.reason())
///     })
///     .await
/// });
/// let stopped: Result<(), _> = outcome.unwrap();
/// assert_eq!(stopped, Err(Some(StopReason::Named("reload"))));
/// ```
#[doc(alias = "AbortHandle")]
#[derive(Clone)]
pub struct StopHandle(Target);

#[derive(Clone)]
enum Target {
    Child(Asker),
    LocalChild(FrameArc<LocalStop>),
    Launched(StopSource),
}

impl StopHandle {
    pub(crate) fn of_child(child: Asker) -> Self {
        Self(Target::Child(child))
    }

    pub(crate) fn of_local_child(child: FrameArc<LocalStop>) -> Self {
        Self(Target::LocalChild(child))
    }

    pub(crate) fn of_launched(source: StopSource) -> Self {
        Self(Target::Launched(source))
    }

    /// Asks the task to stop, for this reason. The first reason stays.
    ///
    /// # Panics
    /// If a callback that is registered with the stop token of a launched task does.
    #[doc(alias = "abort")]
    pub fn request_stop(&self, reason: StopReason) {
        match &self.0 {
            Target::Child(child) => child.ask_stop(reason),
            Target::LocalChild(child) => child.request(reason),
            Target::Launched(source) => {
                source.request_stop(reason);
            }
        }
    }
}

impl fmt::Debug for StopHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopHandle").finish_non_exhaustive()
    }
}

/// The stop request of a child that runs inside the task of its scope.
#[derive(Default)]
pub(crate) struct LocalStop(Mutex<Request>);

#[derive(Default)]
struct Request {
    reason: Option<StopReason>,
    /// The waker of the child, to tell it of the request.
    child: Option<Waker>,
    /// The child has ended.
    ended: bool,
}

impl LocalStop {
    fn lock(&self) -> MutexGuard<'_, Request> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Requests a stop, and wakes the child.
    pub(crate) fn request(&self, reason: StopReason) {
        let mut request = self.lock();
        request.reason.get_or_insert(reason);
        let child = request.child.take();
        drop(request);
        wake_if_any(child);
    }

    /// Returns the reason if the child was asked to stop. If not, stores its waker.
    pub(crate) fn reason_or_wait(&self, waker: &Waker) -> Option<StopReason> {
        let mut clone = None;
        loop {
            let mut request = self.lock();
            if request.reason.is_some() || request.child.as_ref().is_some_and(|child| child.will_wake(waker))
            {
                return request.reason;
            }
            if let Some(waker) = clone.take() {
                let before = request.child.replace(waker);
                drop(request);
                drop(before);
                return None;
            }
            // Cloned without the lock: a clone may run foreign code.
            drop(request);
            clone = Some(waker.clone());
        }
    }

    /// Records that the child has ended, and returns its waker, which the caller drops.
    pub(crate) fn end(&self) -> Option<Waker> {
        let mut request = self.lock();
        request.ended = true;
        request.child.take()
    }

    /// Returns true if the child has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().ended
    }
}
