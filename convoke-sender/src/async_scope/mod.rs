//! The open scope of P3149: what starts senders that something else waits for. [`AsyncScope`] is the concept,
//! [`nest()`], [`spawn()`] and [`spawn_future()`] are the verbs, generic over it.
//! [`CountingScope`](crate::CountingScope) is the scope that comes with Convoke.
//!
//! Work enters a scope with an [`Association`], on any thread, and leaves when that is dropped, which is the last
//! thing that the work does. So a scope is implemented in safe code: it says who may enter, and what leaving means.
//!
//! | file | contents |
//! | --- | --- |
//! | `mod` | the concept: [`AsyncScope`], [`Association`] |
//! | `name` | the name of a piece of work, for messages |
//! | `nest`, `spawn`, `spawn_future` | one verb each |
//! | `block` | spawned work in its one allocation |
//! | `result` | how spawned work and the consumer of its result meet |

mod block;
mod name;
mod nest;
mod result;
mod spawn;
mod spawn_future;

pub use name::WorkName;
pub use nest::{Nest, NestReceiver, Refuse, nest};
pub use spawn::{NoError, NoValue, ScopeSpawnError, spawn};
pub use spawn_future::{FutureOperation, SpawnFuture, spawn_future};

pub(crate) use nest::nest_named;
pub(crate) use spawn::spawn_named;
pub(crate) use spawn_future::spawn_future_named;

use convoke_core::raw::report_panic;
use convoke_core::{Panic, StopToken};

/// A scope that work may enter: it keeps account of the senders that are nested in it, by a rule of its own. The
/// concept `async_scope` of P3149.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use convoke::sender::async_scope::{Association, AsyncScope, WorkName, spawn};
/// use convoke::sender::prelude::*;
///
/// /// Lets at most `most` pieces of work in at a time.
/// struct AtMost {
///     most: usize,
///     inside: Arc<AtomicUsize>,
/// }
///
/// struct Seat(Arc<AtomicUsize>);
///
/// impl Association for Seat {}
///
/// impl Drop for Seat {
///     fn drop(&mut self) {
///         self.0.fetch_sub(1, Ordering::Release);
///     }
/// }
///
/// impl AsyncScope for AtMost {
///     type Association = Seat;
///
///     fn associate(&self, _: WorkName) -> Option<Seat> {
///         let enter = |inside| (inside < self.most).then_some(inside + 1);
///         let entered = self.inside.fetch_update(Ordering::Acquire, Ordering::Relaxed, enter);
///         entered.is_ok().then(|| Seat(self.inside.clone()))
///     }
/// }
///
/// let scope = AtMost { most: 1, inside: Arc::default() };
/// let (completion, work) = std::sync::mpsc::channel();
/// let waits = from_callback(move |done: Completion<()>| completion.send(done).unwrap());
/// spawn(waits, &scope, None).unwrap();
/// assert!(spawn(just(()), &scope, None).is_err(), "one is inside");
/// work.recv().unwrap().value(());
/// spawn(just(()), &scope, None).unwrap();
/// ```
pub trait AsyncScope {
    /// The membership of a piece of work.
    type Association: Association;

    /// Lets a piece of work in. Returns `None` if the scope takes no more work.
    fn associate(&self, name: WorkName) -> Option<Self::Association>;

    /// Returns the token that asks all spawned work of the scope to stop. Nested work has that of the environment
    /// in which it is started. The default never stops.
    fn stop_token(&self) -> StopToken {
        StopToken::never()
    }
}

/// The membership of a piece of work in a scope. It moves with the work, and ends when it is dropped: after the
/// receiver of the work was completed, or when the work is dropped unstarted. It is dropped on any thread. A panic of
/// its destructor, or of [`panicked`](Association::panicked), is contained: the panic hook has reported it.
pub trait Association: Sized + Send + Sync + 'static {
    /// Lets a clone of a nested sender in. The default lets none in: a clone completes as stopped.
    fn again(&self) -> Option<Self> {
        None
    }

    /// Returns a membership that is not counted, to report the panic of work that has left. The default returns
    /// none; such a panic is written to the error stream.
    fn uncounted(&self) -> Option<Self> {
        None
    }

    /// Takes the panic of spawned work that has no receiver for it. The default writes it to the error stream.
    fn panicked(&self, panic: Panic) {
        report_panic(panic);
    }
}

impl<T: AsyncScope + ?Sized> AsyncScope for &T {
    type Association = T::Association;

    #[inline]
    fn associate(&self, name: WorkName) -> Option<T::Association> {
        (**self).associate(name)
    }

    fn stop_token(&self) -> StopToken {
        (**self).stop_token()
    }
}

/// Ends a membership. Contains the panic of a scope of the program's own: other work may have to complete on this thread.
fn leave<A: Association>(association: A) {
    let _ = Panic::of_drop(association);
}

/// Reports a panic to the scope, whose own panic is contained.
fn report_to<A: Association>(association: &A, panic: Panic) {
    let _ = Panic::catch(|| association.panicked(panic));
}
