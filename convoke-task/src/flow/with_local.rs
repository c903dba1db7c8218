//! `with_local(&KEY, value, future)`: runs a future with another value of a key.

use core::future::IntoFuture;

use convoke_core::env::Local;

use super::with::{InEnv, with};

/// Runs a future in an environment in which a key has this value. All that the future starts sees it too, if
/// the key is inherited. The future may borrow. Use [`with()`] to change more than one value.
///
/// - *Completes with* what the future returns. Stopped, if the future was.
/// - *If dropped*, the future is dropped.
/// - *Runs on* the task that awaits it.
/// - *Panics* with the panic of the future; and outside a task.
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
pub fn with_local<T, F>(key: &'static Local<T>, value: T, future: F) -> WithLocal<F::IntoFuture>
where
    T: Send + Sync + 'static,
    F: IntoFuture,
{
    with().local(key, value).run(future)
}

/// The future of [`with_local()`].
pub type WithLocal<F> = InEnv<F>;
