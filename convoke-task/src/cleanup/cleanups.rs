//! `cleanups(body)`: any number of resources, closed in reverse order.

use core::fmt;
use core::future::Future;
use core::panic::Location;

use convoke_core::FailsAs;
use convoke_core::raw::FrameArc;

use super::cleanup_output::CleanupOutput;
use super::future::{Held, Reports, Using};
use super::lent::lend;
use super::problem::CleanupId;
use super::stack::{Entry, FirstFailure, Stack, close};
use super::{AsyncClose, Exit, Lent};

/// Runs a body that has a stack of clean-ups. When the body has ended, with a value, a failure, a stop or a
/// panic, they run in reverse order. Each runs, even if others fail, stop or panic. Together they are
/// shielded from stop requests and have one [grace period](Using::grace).
///
/// Use this if clean-ups are added under way. Use [`using`](crate::using()) or [`ensure`](crate::ensure()) if
/// there is one.
///
/// The body returns a `Result`. The errors of the clean-ups are converted to its error type, as by `?`.
///
/// - *Completes with* the output of the body; or, if that is a value, with the first failure of a clean-up.
///   What cannot be returned goes to the [hook](super::set_cleanup_hook), as with [`using`](super::using).
/// - *If dropped* while it runs, everything is dropped, and the hook hears of each clean-up that was skipped.
/// - *Runs on* the task that awaits it.
/// - *Panics* with the panic of the body, or of a clean-up; and outside a task.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::cleanup::cleanups;
///
/// struct Shard(u32);
///
/// impl AsyncClose for Shard {
///     type Error = std::io::Error;
///
///     async fn close(self, _: Exit) -> Result<(), std::io::Error> {
///         println!("shard {} is closed", self.0); // 2, then 1, then 0
///         Ok(())
///     }
/// }
///
/// let outcome = block_on(async {
///     cleanups(async |cleanups| {
///         let mut shards = Vec::new();
///         for n in 0..3 {
///             shards.push(cleanups.push(Shard(n)));
///             checkpoint().await;
///         }
///         cleanups.ensure(async |exit| println!("the body {exit}"));
///         Ok::<_, std::io::Error>(shards.iter().map(|shard| shard.0).sum::<u32>())
///     })
///     .await
/// });
/// assert_eq!(outcome.unwrap().unwrap(), 3);
/// ```
#[track_caller]
pub fn cleanups<'c, E, B, F, T>(
    body: B,
) -> Using<Cleanups<'c, E>, F, impl Future<Output = Result<(), FirstFailure<E>>> + Send>
where
    E: Send + 'c,
    B: FnOnce(Cleanups<'c, E>) -> F,
    F: Future<Output = Result<T, E>>,
{
    let cleanups = Cleanups { stack: FrameArc::in_task(Stack::new()) };
    let whose = CleanupId { what: "a stack of clean-ups", location: Location::caller() };
    let body = body(cleanups.clone());
    let close = |cleanups: Cleanups<'c, E>, exit| close(cleanups.stack, exit);
    Using::new(body, Held::Here(Some(cleanups)), close, whose, Reports::Elsewhere)
}

/// Stack of clean-ups of a body. [`cleanups()`] passes it to the body. A clone is the same stack.
pub struct Cleanups<'c, E> {
    stack: FrameArc<Stack<'c, E>>,
}

impl<'c, E> Cleanups<'c, E> {
    /// Adds a resource, to be closed when the body has ended. The body uses it until then, as with
    /// [`using`](super::using).
    #[track_caller]
    pub fn push<R>(&self, resource: R) -> Lent<R>
    where
        R: AsyncClose<Error: FailsAs<E>> + Send + 'c,
    {
        let whose = CleanupId { what: core::any::type_name::<R>(), location: Location::caller() };
        let (lent, lender) = lend(resource);
        self.stack.push(Entry::new(whose, move |exit| lender.take().map(|resource| resource.close(exit))));
        lent
    }

    /// Adds a clean-up, `async |exit| { … }`, to run when the body has ended. It returns `()` or a
    /// `Result<(), _>`.
    #[track_caller]
    pub fn ensure<K, C>(&self, clean_up: K)
    where
        K: FnOnce(Exit) -> C + Send + 'c,
        C: Future<Output: CleanupOutput<Error: FailsAs<E>>> + Send + 'c,
    {
        let whose = CleanupId { what: core::any::type_name::<K>(), location: Location::caller() };
        self.stack.push(Entry::new(whose, move |exit| Some(clean_up(exit))));
    }
}

impl<E> Clone for Cleanups<'_, E> {
    fn clone(&self) -> Self {
        Self { stack: self.stack.clone() }
    }
}

impl<E> fmt::Debug for Cleanups<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cleanups").finish_non_exhaustive()
    }
}
