//! The scope of P3149: work that is started in it, from anywhere, is counted, and its end is waited for.
//!
//! `state.rs` is the machine, `shared.rs` its lock; `nest.rs`, `spawn.rs`, `spawn_future.rs`, `join.rs` and `drain.rs`
//! are the verbs. `block.rs` is spawned work in its one allocation; `meeting.rs` and `result.rs` are how such work and
//! whoever wants its result find each other.

mod block;
mod drain;
mod handle;
mod join;
mod name;
mod nest;
mod rendezvous;
mod result;
mod roll;
mod shared;
mod spawn;
mod spawn_future;
mod state;

pub use drain::{Drain, DrainOperation};
pub use handle::{Named, ScopeHandle};
pub use join::{Join, JoinOperation};
pub use nest::{Nest, NestReceiver, Refuse};
pub use spawn::{NoError, NoValue, SpawnError};
pub use spawn_future::{FutureOperation, SpawnFuture};

use core::fmt;
use core::ops::Deref;

use convoke_core::{Panic, StopReason};

use convoke_inspect::tree::{Tree, tree};
use shared::Shared;

/// So much of the tree of tasks is in the complaint of a scope that was not joined.
const MOST_LINES: usize = 40;

/// A scope that counts the work in it. It is open until a [`join`](CountingScope::join) is started, then closed; when it
/// is closed and all work has left, it is joined.
///
/// The verbs that put work into it are those of [`ScopeHandle`]: [`nest`](ScopeHandle::nest),
/// [`spawn`](ScopeHandle::spawn), [`spawn_future`](ScopeHandle::spawn_future). It is for work whose number and time are
/// not known beforehand: messages of a window, connections of a server.
///
/// Nothing is lost: if spawned work panics, the first panic, with the name of the work, is the outcome of `join` (or of a
/// [`drain`](CountingScope::drain) before it). The others are not stopped by it.
///
/// Who waits for a scope must see to it that work does end: a nested sender that is kept and never started keeps the
/// join waiting.
///
/// # Panics
/// Dropping it while work is in it is a bug: what was spawned is asked to stop, and the drop panics with the names of
/// all that was there. The work stays safe to run, but nobody waits for it. So does dropping it before anybody has heard of a panic. While the thread panics anyhow, the message goes to
/// the error stream.
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
    /// An open scope with nothing in it.
    pub fn new() -> Self {
        Self { handle: ScopeHandle { shared: Shared::new() } }
    }

    /// A handle, for those who put work into the scope and do not own it.
    pub fn handle(&self) -> ScopeHandle {
        self.handle.clone()
    }

    /// A sender that closes the scope when it is started, and completes when nobody is left. To call or to connect it
    /// changes nothing yet. There may be several.
    ///
    /// - *Completes with* `()` when the count is zero. If spawned work panicked: with the first panic; its message has the
    ///   name of the work. It does not complete because it is asked to stop: what it waits for would be left behind. To
    ///   stop the work, say [`request_stop`](ScopeHandle::request_stop). Stopped if the executor of whoever joins drops
    ///   it.
    /// - *If dropped* before it was started, nothing.
    /// - *Runs on* the thread that starts it, if nobody is there; else on the executor of its environment, wherever the
    ///   last work completed.
    ///
    /// ```
    /// use convoke::sender::prelude::*;
    ///
    /// let scope = CountingScope::new();
    /// scope.named("parser").spawn(just_from(|| -> () { panic!("no end of line") }), &Env::new()).unwrap();
    /// let outcome = sync_wait(scope.join().materialize());
    /// let Outcome::Value(Outcome::Panicked(panic)) = outcome else { unreachable!() };
    /// assert_eq!(panic.message(), "`parser` panicked: no end of line");
    /// ```
    ///
    /// A sender that makes its own scope takes it along:
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
    pub fn join(&self) -> Join {
        Join::new(self.handle.shared.clone())
    }

    /// A sender that completes when nobody is in the scope, and leaves it open: it waits for the work, and for what that
    /// work puts into the scope meanwhile.
    ///
    /// - *Completes with* `()` when the count was zero; with the first panic of spawned work that nobody has heard of yet,
    ///   and then nobody else will. Stopped if it is asked to stop meanwhile: the work goes on.
    /// - *If dropped* before it was started, nothing.
    /// - *Runs on* the thread that starts it, if nobody is there; else on the executor of its environment.
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
            // Before they are asked to stop: what they wait for is what people want to know.
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
            complaints.push(format!("nobody has heard of a panic: {}", panic.message()));
        }
        if complaints.is_empty() {
            return;
        }
        let mut complaint = format!("a `CountingScope` must be joined: {}", complaints.join("; "));
        if !tasks.is_empty() {
            complaint += &format!("\nthe tasks of the process were then:\n{tasks:.MOST_LINES$}");
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
