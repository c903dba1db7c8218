//! The counting scope of P3149: it counts the work that is started in it, from anywhere, and waits for that
//! work to end.
//!
//! A scope, its handles and its work share a `ScopeState` under a lock (`shared`). Work enters
//! with a `Membership`, on any thread, and leaves when that is dropped, which is the last thing that work
//! does. Joins and drains wait in the state; the last work to leave posts them to their executors, after the
//! lock is released. No code of the program runs under the lock.
//!
//! | file | contents |
//! | --- | --- |
//! | `state`, `slab` | the state machine: phases, names of the work, waiters, first panic |
//! | `shared` | the lock, and the execution of what the transitions return |
//! | `handle` | the public operations of a scope |
//! | `join`, `drain` | one operation each |
//!
//! The functions that add work to any scope are in [`async_scope`](crate::async_scope).

mod drain;
mod handle;
mod join;
mod shared;
mod slab;
mod state;

pub use crate::async_scope::{
    FutureOperation, Nest, NestReceiver, NoError, NoValue, Refuse, ScopeSpawnError, SpawnFuture,
};
pub use drain::{Drain, DrainOperation};
pub use handle::{Named, ScopeHandle};
pub use join::{JoinScope, JoinScopeOperation};
pub use shared::Membership;

use core::fmt;
use core::ops::Deref;

use crate::async_scope::{AsyncScope, WorkName};
use convoke_core::{Panic, StopReason, StopToken};

use convoke_inspect::tree::{Tree, tree};
use shared::SharedScope;

/// The maximum number of lines of the task tree in the message of a scope that was not joined.
const MAX_TREE_LINES: usize = 40;

/// A scope that counts the work in it. It is open until a [`join`](CountingScope::join) is started, then
/// closed; when it is closed and all work has left, it is joined.
///
/// The methods that add work are those of [`ScopeHandle`]: [`nest`](ScopeHandle::nest),
/// [`spawn`](ScopeHandle::spawn), [`spawn_future`](ScopeHandle::spawn_future). Use it for work whose number
/// and time are not known beforehand: messages of a window, connections of a server.
///
/// If spawned work panics, the first panic, with the name of the work, is the outcome of `join` (or of a
/// [`drain`](CountingScope::drain) before it). The other work is not stopped by it.
///
/// A join waits until all work has ended: a nested sender that is stored and never started keeps the join
/// waiting.
///
/// # Panics
/// Dropping it while work is in it is a bug: spawned work is asked to stop, and the drop panics with the
/// names of all work that was in the scope. The work is still safe to run, but nothing waits for it. Dropping
/// it after work has panicked, and before a `join` or `drain` has reported that, panics too. If the thread is
/// panicking already, the message goes to the error stream instead.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sender::prelude::*;
///
/// let pool = ThreadPool::new(2).unwrap();
/// let scope = CountingScope::new();
/// for message in ["open", "draw", "close"] {
///     let handling = schedule(&pool.executor()).then(move |()| println!("{message}"));
///     scope.spawn(handling, &Env::from(pool.executor())).unwrap();
/// }
/// assert_eq!(sync_wait(scope.join()), Outcome::Value(()));
/// assert!(scope.joined());
/// ```
pub struct CountingScope {
    handle: ScopeHandle,
}

impl CountingScope {
    /// Creates an open, empty scope.
    pub fn new() -> Self {
        Self { handle: ScopeHandle { shared: SharedScope::new() } }
    }

    /// Returns a handle, for code that adds work to the scope and does not own it.
    pub fn handle(&self) -> ScopeHandle {
        self.handle.clone()
    }

    /// Returns a sender that closes the scope when it starts, and completes when no work is left. Calling
    /// this method or connecting the sender has no effect yet. There may be several joins.
    ///
    /// - *Completes with* `()` when the count is zero. If spawned work panicked: with the first panic; its
    ///   message has the name of the work. A stop request does not end it, because that would leave the work
    ///   running alone: use [`request_stop`](ScopeHandle::request_stop) to stop the work. Stopped if the
    ///   executor of its environment drops it.
    /// - *If dropped* before it starts, nothing happens.
    /// - *Runs on* the thread that starts it, if the scope is empty; else on the executor of its environment,
    ///   wherever the last work completed.
    ///
    /// ```
    /// use convoke::sender::prelude::*;
    ///
    /// let scope = CountingScope::new();
    /// let parser = just_from(|| -> () { panic!("no end of line") });
    /// scope.named("parser").spawn(parser, &Env::new()).unwrap();
    /// let outcome = sync_wait(scope.join().materialize());
    /// let Outcome::Value(Outcome::Panicked(panic)) = outcome else { unreachable!() };
    /// assert_eq!(panic.message(), "`parser` panicked: no end of line");
    /// ```
    ///
    /// A sender that makes its own scope moves the scope into its last step:
    ///
    /// ```
    /// use convoke::sender::prelude::*;
    ///
    /// fn both() -> impl Sender<Value = (), Error = Never> {
    ///     let scope = CountingScope::new();
    ///     scope.spawn(just_from(|| println!("one")), &Env::new()).unwrap();
    ///     scope.spawn(just_from(|| println!("two")), &Env::new()).unwrap();
    ///     scope.join().then(move |()| drop(scope))
    /// }
    /// assert_eq!(sync_wait(both()), Outcome::Value(()));
    /// ```
    pub fn join(&self) -> JoinScope {
        JoinScope::new(self.handle.shared.clone())
    }

    /// Returns a sender that completes when the scope is empty, and leaves it open: it waits for the work,
    /// and for the work that is added meanwhile.
    ///
    /// - *Completes with* `()` when the count was zero; with the first panic of spawned work that was not
    ///   reported yet, which is then not reported again. Stopped if it is asked to stop meanwhile: the work
    ///   continues.
    /// - *If dropped* before it starts, nothing happens.
    /// - *Runs on* the thread that starts it, if the scope is empty; else on the executor of its environment.
    ///
    /// ```
    /// use convoke::sender::prelude::*;
    ///
    /// let scope = CountingScope::new();
    /// scope.spawn(just(()), &Env::new()).unwrap();
    /// assert_eq!(sync_wait(scope.drain()), Outcome::Value(()));
    /// scope.spawn(just(()), &Env::new()).expect("it is still open");
    /// assert_eq!(sync_wait(scope.join()), Outcome::Value(()));
    /// ```
    pub fn drain(&self) -> Drain {
        Drain::new(self.handle.shared.clone())
    }
}

impl Default for CountingScope {
    fn default() -> Self {
        Self::new()
    }
}

impl AsyncScope for CountingScope {
    type Association = Membership;

    fn associate(&self, name: WorkName) -> Option<Membership> {
        self.handle.associate(name)
    }

    fn stop_token(&self) -> StopToken {
        self.handle.stop_token()
    }
}

impl Deref for CountingScope {
    type Target = ScopeHandle;

    fn deref(&self) -> &ScopeHandle {
        &self.handle
    }
}

impl Drop for CountingScope {
    fn drop(&mut self) {
        let left = self.handle.shared.state().abandon();
        let mut complaints = Vec::new();
        let mut tasks = Tree::default();
        if !left.names.is_empty() {
            // Before the work is asked to stop, because the tree shows what it waits for.
            tasks = tree();
            let names: Vec<_> = left.names.iter().map(ToString::to_string).collect();
            let count = match names.len() {
                1 => "1 piece".to_owned(),
                count => format!("{count} pieces"),
            };
            complaints.push(format!("dropped with {count} of work still in it: {}", names.join(", ")));
            if let Err(panic) = Panic::catch(|| self.request_stop(StopReason::Abandoned)) {
                complaints.push(format!("a stop callback {panic}"));
            }
        }
        if let Some(panic) = left.panic {
            let message = panic.message();
            complaints.push(format!("work in it panicked, and no `join` or `drain` reported it: {message}"));
        }
        if complaints.is_empty() {
            return;
        }
        let mut complaint = format!("a `CountingScope` must be joined: {}", complaints.join("; "));
        if !tasks.is_empty() {
            complaint += &format!("\nthe tasks of the process were then:\n{tasks:.MAX_TREE_LINES$}");
        }
        if std::thread::panicking() {
            eprintln!("convoke: {complaint}");
        } else {
            panic!("{complaint}");
        }
    }
}

impl fmt::Debug for CountingScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CountingScope").field(&self.handle).finish()
    }
}
