//! `blocking_scope(&executor, |s| …)`: what `std::thread::scope` is for threads. Entered from blocking code, whose thread
//! stays until all children have ended; therefore they may borrow from it.

#![allow(unsafe_code)]

use core::ptr::NonNull;
use core::task::Waker;
use std::sync::Arc;
use std::task::Wake;

use convoke_core::env::Changes;
use convoke_core::raw::sync::thread;
use convoke_core::raw::{OnStop, RawCallback, Runnable};
use convoke_core::{BodyOutput, Env, Executor, ExecutorRef, Panic, StopReason};

use super::block::{Block, Failure};
use super::blocking_spawn::BlockingScope;
use super::spawn::Scope;
use crate::own_thread::runs_only_here;

/// Opens a scope in blocking code: runs `body` on this thread, which starts children on the executor, and returns when the
/// body and all children have ended. The children may borrow from around the scope.
///
/// The first to fail, a child or the body, with an `Err` or a panic, stops the others; they come home, and its failure is
/// the scope's. The body cannot be interrupted, but the children that it waits for are stopped.
///
/// - *Completes with* what the body returns, or with the error of the child that failed first. If a child or the body
///   panicked the panic goes on here, with the child's name.
/// - *Runs on*: the body, on the calling thread, which then blocks; children, on the executor, in parallel where it has
///   several threads.
///
/// # Panics
/// Also if this thread is the only one that could run the children, such as that of a run loop; and if there is no
/// memory. A pool all of whose threads are in such scopes is not recognised, and waits for ever.
///
/// ```
/// use convoke::prelude::*;
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
/// What a child returns is waited for with its handle, and an error is the scope's by its type:
///
/// ```
/// use convoke::prelude::*;
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

/// The same, with children in a changed environment: with a stop token, which stops them, locals, a frame allocator. The
/// executor is the one that is named.
///
/// # Panics
/// As [`blocking_scope`].
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
    let Some(block) = Block::<O>::open_in(env, token.deadline(), None) else {
        panic!("the frame allocator has no memory left for a scope")
    };
    let stop = RawCallback::new(StopChildren(NonNull::from(&*block)));
    let opened = BlockingScope::new(Scope::new(block.clone()));
    // SAFETY: it is on this stack, and not moved; the token and the block are too, and outlive it, for nothing below
    // unwinds before it is removed.
    unsafe { stop.register(token.as_ref()) };
    let ended = Panic::catch(|| body(&opened));
    let value = match ended {
        Ok(value) if !value.is_failure() => Some(value),
        Ok(error) => fail(&block, Failure::Output(error)),
        Err(panic) => fail(&block, Failure::Panic(panic)),
    };
    let failure = wait_for_children(&block);
    // SAFETY: it is registered.
    unsafe { stop.remove() };
    match (failure, value) {
        (Some(Failure::Panic(panic)), _) => panic.resume(),
        (Some(Failure::Output(error)), _) => error,
        (None, Some(value)) => value,
        (None, None) => unreachable!("a failure of the body is in the block"),
    }
}

fn fail<O>(block: &Block<O>, failure: Failure<O>) -> Option<O> {
    block.fail(failure);
    // Should an executor panic here: the children borrow from this stack, and are waited for nevertheless.
    let _ = Panic::catch(|| block.stop_children(StopReason::Sibling));
    None
}

/// Blocks until the last child has ended. Does not unwind.
fn wait_for_children<O>(block: &Block<O>) -> Option<Failure<O>> {
    let mut waker = None;
    loop {
        let mut state = block.state.lock();
        if state.children.is_empty() {
            state.ended = true;
            return state.failure.take();
        }
        state.body_ended = true;
        if state.waker.is_none() {
            state.waker = waker.take();
        }
        let in_place = state.waker.is_some();
        drop(state);
        if in_place {
            // A child may be refused just now, further up on our stack.
            if !Runnable::stop_deferred() {
                thread::park();
            }
        } else {
            waker = Some(thread_waker());
        }
    }
}

/// A stop request from outside goes on to the children.
struct StopChildren<O>(NonNull<Block<O>>);

// SAFETY: children may be asked to stop from any thread, and the block outlives the callback.
unsafe impl<O> Send for StopChildren<O> {}

impl<O> OnStop for StopChildren<O> {
    fn on_stop(self, reason: StopReason) {
        // SAFETY: as above.
        unsafe { self.0.as_ref() }.stop_children(reason);
    }
}

/// Unparks the thread that made it.
pub(super) fn thread_waker() -> Waker {
    struct Unpark(thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    Waker::from(Arc::new(Unpark(thread::current())))
}
