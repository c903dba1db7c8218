//! `run_local(future)`: a chain that is not `Send`, inside a tokio task that stays on its thread.

use core::cell::RefCell;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::rc::Rc;
use std::sync::Arc;

use convoke_core::raw::Frame;
use convoke_core::{StopReason, StopToken};
use convoke_exec::RunLoop;
use convoke_task::{Stopped, run_until_stopped};

use crate::chain::{Chain, Options};
use crate::run::current_runtime;
use crate::spare_loops;

/// Runs a future that is not `Send` with all of Convoke inside the tokio task that awaits it, in a
/// [`LocalSet`](tokio::task::LocalSet) or a local runtime. Children may be not `Send` either
/// (`s.child().local()`), and tasks are cheaper here than in [`run`](crate::run()).
///
/// - *Completes with* `Ok` of what the future returns; with [`Stopped`], and the reason, if it was stopped: by
///   its [token](RunLocal::stop_token), by [`finish`](crate::finish()), or by itself.
/// - *If dropped*, the chain is asked to stop ([`StopReason::Abandoned`]), and a task of the `LocalSet` awaits
///   its clean-up. If the `LocalSet` is dropped, it is cut short: destructors run, and skipped clean-up is
///   reported to the hook (`convoke::cleanup::set_cleanup_hook`).
/// - *Runs on* the tokio task that awaits it. Inside a task of Convoke's it is a part of that task, and a stop from
///   around goes on there.
/// - *Panics* if the future does: the panic is resumed here. Outside a `LocalSet`, as `spawn_local` does; and if
///   the chain waits for a time and the runtime's timers are not enabled.
///
/// ```
/// use std::rc::Rc;
/// use convoke::prelude::*;
/// use convoke_tokio::run_local;
/// use tokio::task::LocalSet;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let chain = run_local(async {
///     let shared = Rc::new(7); // Not `Send`.
///     let child = shared.clone();
///     scope(async |s| {
///         s.child().local().spawn_future(async move { *child }).await
///     })
///     .await
/// });
/// assert_eq!(LocalSet::new().run_until(chain).await, Ok(7));
/// # }
/// ```
#[track_caller]
pub fn run_local<F: Future<Output: 'static> + 'static>(future: F) -> RunLocal<F> {
    RunLocal { state: LocalRunState::NotBegun(future, Options::here()) }
}

/// Future of [`run_local()`].
#[must_use = "futures do nothing until they are awaited"]
pub struct RunLocal<F: Future<Output: 'static> + 'static> {
    state: LocalRunState<F, F::Output>,
}

enum LocalRunState<F, T: 'static> {
    NotBegun(F, Options),
    Alone {
        chain: Chain<RunLoop, T>,
        owner: OutcomeOwner<T>,
    },
    /// Inside a task of Convoke's.
    Nested(Pin<Box<dyn Future<Output = Result<T, Stopped>>>>),
    Ended,
}

// The future is moved into its task before it is polled.
impl<F: Future<Output: 'static> + 'static> Unpin for RunLocal<F> {}

impl<F: Future<Output: 'static> + 'static> RunLocal<F> {
    /// Sets the name of the chain, for the tree of tasks and for panics. Without one, it is known by the line that
    /// called [`run_local()`].
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        if let LocalRunState::NotBegun(_, options) = &mut self.state {
            options.name = Some(name.into());
        }
        self
    }

    /// Sets the stop token: the chain is asked to stop when its source is. It inherits the token's deadline.
    #[doc(alias = "CancellationToken")]
    pub fn stop_token(mut self, token: StopToken) -> Self {
        if let LocalRunState::NotBegun(_, options) = &mut self.state {
            options.token = token;
        }
        self
    }
}

impl<F: Future<Output = T> + 'static, T: 'static> LocalRunState<F, T> {
    fn begin(future: F, options: Options) -> Self {
        if Frame::current(|frame| frame.is_some()) {
            return Self::Nested(Box::pin(run_until_stopped(options.token, future)));
        }
        let runtime = current_runtime(options.location).id();
        // First, as it panics outside a `LocalSet`.
        let owner = OutcomeOwner::spawn();
        let chain = Chain::start(spare_loops::take(), runtime, &options, |run_loop: &RunLoop, launch| {
            run_loop.on_owner_thread(|| launch.start_local(future))
        });
        Self::Alone { chain, owner }
    }
}

impl<F: Future<Output: 'static> + 'static> Future for RunLocal<F> {
    type Output = Result<F::Output, Stopped>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let state = &mut self.state;
        if let LocalRunState::NotBegun(..) = state
            && let LocalRunState::NotBegun(future, options) = core::mem::replace(state, LocalRunState::Ended)
        {
            *state = LocalRunState::begin(future, options);
        }
        let ended = match state {
            LocalRunState::Alone { chain, .. } => chain.poll(cx),
            LocalRunState::Nested(future) => future.as_mut().poll(cx),
            LocalRunState::NotBegun(..) | LocalRunState::Ended => {
                panic!("`convoke_tokio::run_local` polled after it has ended")
            }
        };
        if ended.is_ready()
            && let LocalRunState::Alone { mut chain, .. } = core::mem::replace(state, LocalRunState::Ended)
            && let Some(pump) = chain.take_pump()
        {
            spare_loops::give_back(pump);
        }
        ended
    }
}

impl<F: Future<Output: 'static> + 'static> Drop for RunLocal<F> {
    fn drop(&mut self) {
        if let LocalRunState::Alone { chain, owner } =
            core::mem::replace(&mut self.state, LocalRunState::Ended)
            && !chain.has_ended()
        {
            chain.request_stop(StopReason::Abandoned);
            owner.inherit(chain);
        }
    }
}

/// A task of the `LocalSet` that awaits the chain if its future is dropped. It is spawned when the chain starts: a
/// destructor could neither find out whether there is a `LocalSet` nor report that there is none.
struct OutcomeOwner<T: 'static>(Rc<RefCell<OwnedOutcome<T>>>);

struct OwnedOutcome<T: 'static> {
    chain: Option<Chain<RunLoop, T>>,
    waker: Option<Waker>,
    /// Set when the chain has ended without the owner, or the owner was dropped.
    is_settled: bool,
}

impl<T: 'static> OutcomeOwner<T> {
    fn spawn() -> Self {
        let outcome = Rc::new(RefCell::new(OwnedOutcome { chain: None, waker: None, is_settled: false }));
        drop(tokio::task::spawn_local(Inherits { outcome: outcome.clone(), chain: None }));
        Self(outcome)
    }

    /// Gives the chain to the task. If the `LocalSet` was dropped, the chain is.
    fn inherit(&self, chain: Chain<RunLoop, T>) {
        let mut outcome = self.0.borrow_mut();
        let (chain, waker) = if outcome.is_settled {
            (Some(chain), None)
        } else {
            outcome.chain = Some(chain);
            (None, outcome.waker.take())
        };
        drop(outcome);
        drop(chain);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl<T: 'static> Drop for OutcomeOwner<T> {
    fn drop(&mut self) {
        let mut outcome = self.0.borrow_mut();
        outcome.is_settled |= outcome.chain.is_none();
        let waker = outcome.waker.take();
        drop(outcome);
        waker.into_iter().for_each(Waker::wake);
    }
}

/// The future of the task.
struct Inherits<T: 'static> {
    outcome: Rc<RefCell<OwnedOutcome<T>>>,
    chain: Option<Chain<RunLoop, T>>,
}

impl<T: 'static> Future for Inherits<T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { outcome, chain } = &mut *self;
        if chain.is_none() {
            let waker = cx.waker().clone();
            let mut outcome = outcome.borrow_mut();
            *chain = outcome.chain.take();
            if chain.is_none() {
                if outcome.is_settled {
                    return Poll::Ready(());
                }
                let before = outcome.waker.replace(waker);
                drop(outcome);
                drop(before);
                return Poll::Pending;
            }
        }
        chain.as_mut().map_or(Poll::Ready(()), |chain| chain.poll_ended(cx))
    }
}

impl<T: 'static> Drop for Inherits<T> {
    fn drop(&mut self) {
        let mut outcome = self.outcome.borrow_mut();
        outcome.is_settled = true;
        let left = (outcome.chain.take(), outcome.waker.take());
        drop(outcome);
        drop(left);
    }
}

impl<F: Future<Output: 'static> + 'static> fmt::Debug for RunLocal<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunLocal").finish_non_exhaustive()
    }
}
