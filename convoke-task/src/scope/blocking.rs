//! `blocking_scope(&executor, |s| …)`: a scope in blocking code, as `std::thread::scope` is for threads. The
//! calling thread blocks until all children have ended; therefore they may borrow from it.

use core::task::Waker;
use std::sync::Arc;
use std::task::Wake;

use convoke_core::env::Changes;
use convoke_core::raw::sync::thread;
use convoke_core::raw::{OnStop, Runnable};
use convoke_core::{BodyOutput, Env, Executor, ExecutorRef, Panic, StopReason};

use super::block::{Block, Failure};
use super::blocking_spawn::BlockingScope;
use super::spawn::Scope;
use crate::own_thread::runs_only_here;
use crate::stop_callback::with_stop_callback;

/// Opens a scope in blocking code: runs `body` on this thread, which starts children on `executor`, and
/// returns when the body and all children have ended. The children may borrow from around the scope.
///
/// Use this if the caller is ordinary code, and its children borrow. Use [`scope`](super::scope()) in a task.
///
/// The first failure stops the others: an `Err` or a panic of a child, or an `Err`, `None` or a panic of the
/// body (see [`BodyOutput`]). The scope waits for them, and then fails with it. The body cannot be
/// interrupted, but the children that it waits for are stopped.
///
/// - *Completes with* the output of the body, or with the error of the child that failed first.
/// - *Runs on*: the body, on the calling thread, which then blocks; children, on the executor, in parallel if
///   it has several threads.
///
/// # Panics
/// With the panic of the body, or of a child, and its name. If this thread is the only one that could run the
/// children, such as the thread of a run loop. If there is no memory. A pool whose threads are all blocked in
/// such scopes is not detected: the call never returns.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::blocking_scope;
///
/// let pool = ThreadPool::new(2).unwrap();
/// let mut numbers = vec![1, 2, 3, 4];
/// let (left, right) = numbers.split_at_mut(2);
/// blocking_scope(&pool.executor(), |s| {
///     s.spawn(async { left.iter_mut().for_each(|n| *n *= 10) });
///     s.spawn(async { right.iter_mut().for_each(|n| *n *= 10) });
/// });
/// assert_eq!(numbers, [10, 20, 30, 40]);
/// ```
///
/// A handle waits for the value of a child, and a child that returns an error passes it to the scope:
///
/// ```
/// use convoke::prelude::*;
/// use convoke::blocking_scope;
///
/// let pool = ThreadPool::new(2).unwrap();
/// let text = String::from("1 2 x");
/// let outcome = blocking_scope(&pool.executor(), |s| {
///     let length = s.spawn_future(async { text.len() });
///     s.spawn(async {
///         for word in text.split(' ') {
///             word.parse::<u32>()?;
///         }
///         Ok(())
///     });
///     Ok::<_, std::num::ParseIntError>(length.wait())
/// });
/// assert!(outcome.is_err());
/// ```
#[track_caller]
pub fn blocking_scope<'env, X, O, F>(executor: &X, body: F) -> O
where
    X: Executor,
    F: for<'scope> FnOnce(&'scope BlockingScope<'scope, 'env, O>) -> O,
    O: BodyOutput,
{
    blocking_scope_with(Changes::new(), executor, body)
}

/// Opens a scope in blocking code, with changes to the environment of the children: a stop token, locals, a
/// frame allocator. An executor in `changes` is ignored. Otherwise like [`blocking_scope`].
///
/// # Panics
/// With the panic of the body, or of a child, and its name. If this thread is the only one that could run the
/// children. If there is no memory.
#[track_caller]
pub fn blocking_scope_with<'env, X, O, F>(changes: Changes, executor: &X, body: F) -> O
where
    X: Executor,
    F: for<'scope> FnOnce(&'scope BlockingScope<'scope, 'env, O>) -> O,
    O: BodyOutput,
{
    assert!(
        !runs_only_here(executor),
        "the children of this `blocking_scope` would run on this thread alone, which waits for them; name another executor, \
         or open a `scope` in a task"
    );
    let env = Env::new().with(changes.executor(ExecutorRef::new(executor.clone())));
    let token = env.stop_token();
    let Some(block) = Block::<O>::open_in(&env.allocator().clone(), || env, token.deadline(), None) else {
        panic!("the frame allocator has no memory left for a scope")
    };
    let opened = BlockingScope::new(Scope::new(block.clone()));
    // Nothing in here unwinds: the children borrow from the stack above.
    let (failure, value) = with_stop_callback(token.as_ref(), StopChildren(&block), || {
        let ended = Panic::catch(|| body(&opened));
        let value = match ended {
            Ok(value) if !value.is_failure() => Some(value),
            Ok(error) => fail(&block, Failure::Output(error)),
            Err(panic) => fail(&block, Failure::Panic(panic)),
        };
        (wait_for_children(&block), value)
    });
    match (failure, value) {
        (Some(Failure::Panic(panic)), _) => panic.resume(),
        (Some(Failure::Output(error)), _) => error,
        (None, Some(value)) => value,
        (None, None) => unreachable!("`fail` stored the failure of the body in the block"),
    }
}

/// Stores a failure of the body in the block, and asks the children to stop.
fn fail<O>(block: &Block<O>, failure: Failure<O>) -> Option<O> {
    block.fail(failure, false);
    // If an executor panics here, the scope must still wait: the children borrow from this stack.
    let _ = Panic::catch(|| block.stop_children(StopReason::Sibling));
    None
}

/// Blocks until the last child has ended, and returns the first failure. Does not unwind.
fn wait_for_children<O>(block: &Block<O>) -> Option<Failure<O>> {
    let mut waker = None;
    loop {
        let mut state = block.state.lock();
        if state.failure.is_none() && block.has_news() && block.check_unheard(&mut state) {
            drop(state);
            // If an executor panics here, the scope must still wait: the children borrow from this stack.
            let _ = Panic::catch(|| block.stop_children(StopReason::Sibling));
            continue;
        }
        if state.children.is_empty() {
            state.end();
            return state.failure.take();
        }
        state.body_ended = true;
        if state.waker.is_none() {
            state.waker = waker.take();
        }
        let waits = state.waker.is_some();
        let unheard = state.unheard.clone();
        drop(state);
        if waits {
            if let Some(unheard) = unheard
                && unheard.set_waker(thread_waker())
            {
                continue;
            }
            // An executor below us on this stack may have refused a child; then this thread must end it.
            if !Runnable::stop_deferred() {
                thread::park();
            }
        } else {
            waker = Some(thread_waker());
        }
    }
}

/// Callback that passes a stop request from outside on to the children.
struct StopChildren<'a, O>(&'a Block<O>);

impl<O> OnStop for StopChildren<'_, O> {
    fn on_stop(self, reason: StopReason) {
        self.0.stop_children(reason);
    }
}

/// Creates a waker that unparks the calling thread.
pub(super) fn thread_waker() -> Waker {
    struct Unpark(thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    Waker::from(Arc::new(Unpark(thread::current())))
}
