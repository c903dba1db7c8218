//! `with_local(&KEY, value, future)`: runs a future with another value of a key.

use core::future::Future;

use convoke_core::env::{Changes, Local};
use convoke_core::raw::AdoptedFuture;

use crate::child_env::ChildInEnv;
use crate::child_task::task;

/// Runs a future in an environment in which a key has this value. All that the future starts sees it too, if
/// the key is inherited. The future becomes a task of its own, and so must be `Send` and `'static`.
///
/// - *Completes with* what the future returns. Stopped, if the future was.
/// - *If dropped*, the future is asked to stop, and the task waits for it before it ends.
/// - *Runs on* the executor of the task that awaits it.
///
/// ```
/// use convoke::env::Local;
/// use convoke::prelude::*;
/// use convoke::env::{current, with_local};
///
/// static REQUEST: Local<u32> = Local::inherited("request");
///
/// let outcome = block_on(async {
///     let inside = with_local(&REQUEST, 7, async {
///         scope(async |s| {
///             s.spawn_future(async { current::local(&REQUEST) }).await
///         })
///         .await
///     })
///     .await;
///     (inside, current::local(&REQUEST))
/// });
/// assert_eq!(outcome, Outcome::Value((Some(7), None)));
/// ```
#[track_caller]
pub fn with_local<T, F>(key: &'static Local<T>, value: T, future: F) -> WithLocal<F>
where
    T: Send + Sync + 'static,
    F: Future<Output: Send> + Send + 'static,
{
    AdoptedFuture::new(ChildInEnv::new(task(future), Changes::new().local(key, value)))
}

/// The future of [`with_local()`].
pub type WithLocal<F> = AdoptedFuture<ChildInEnv<F>>;
