//! The stack of `cleanups`: last in, first out. Each clean-up has a region of its own, so that none can keep
//! the others from running.

use core::fmt;
use core::future::Future;
use std::sync::PoisonError;

use convoke_core::raw::sync::Mutex;
use convoke_core::raw::{FrameArc, FrameBox, FrameMemory, FrameVec};
use convoke_core::{CleanupFailure, FailsAs, Panic};

use super::Exit;
use super::cleanup_output::CleanupOutput;
use super::closing::{Closed, Closing};
use super::problem::{CleanupId, ProblemKind};
use crate::framed::{Framed, frame_clean_up};

/// One clean-up that has not begun.
pub(super) struct Entry<'c, E> {
    whose: CleanupId,
    begin: Begin<'c, E>,
}

/// Starts a clean-up, if its resource was returned. The flag says if an error is returned; otherwise it is
/// reported. Called once; not an `FnOnce`, which cannot be called where it lies.
type Begin<'c, E> = FrameBox<dyn FnMut((Exit, bool)) -> Option<CleanUp<'c, E>> + Send + 'c>;
type CleanUp<'c, E> = Framed<dyn Future<Output = Ended<E>> + Send + 'c>;

/// The end of a clean-up, except for what it has reported.
enum Ended<E> {
    Nothing,
    /// The error, and its text for a report.
    Error(E, String),
    Panic(Panic),
}

impl<'c, E> Entry<'c, E> {
    pub(super) fn new<C>(whose: CleanupId, begin: impl FnOnce(Exit) -> Option<C> + Send + 'c) -> Self
    where
        C: Future<Output: CleanupOutput<Error: FailsAs<E>>> + Send + 'c,
    {
        let mut begin = Some(begin);
        let begin = move |(exit, wanted): (Exit, bool)| {
            let clean_up = Closing::within(begin.take()?(exit)?);
            let clean_up: CleanUp<'c, E> = frame_clean_up(async move {
                match clean_up.await {
                    Closed::Failed(error) if wanted => {
                        let words = error.to_string();
                        Ended::Error(error.fail_as(), words)
                    }
                    Closed::Panicked(panic) => Ended::Panic(panic),
                    closed => {
                        if let Some(problem) = closed.problem() {
                            whose.report(problem);
                        }
                        Ended::Nothing
                    }
                }
            });
            Some(clean_up)
        };
        Self { whose, begin: FrameBox::in_task(begin).into_dyn_fn() }
    }
}

/// The clean-ups that have not begun.
pub(super) struct Stack<'c, E> {
    entries: Mutex<FrameVec<Entry<'c, E>>>,
}

impl<'c, E> Stack<'c, E> {
    pub(super) fn new() -> Self {
        Self { entries: Mutex::new(FrameMemory::vec_in_task()) }
    }

    pub(super) fn push(&self, entry: Entry<'c, E>) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    fn pop(&self) -> Option<Entry<'c, E>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

/// Reports the clean-ups that are left: the future was dropped before the body had ended.
impl<E> Drop for Stack<'_, E> {
    fn drop(&mut self) {
        while let Some(entry) = self.pop() {
            entry.whose.report(ProblemKind::Skipped);
        }
    }
}

/// Runs all clean-ups, in reverse order. Fails with the first failure, if the body has not failed itself; a
/// panic counts for more than a failure. All others are reported.
pub(super) async fn close<E>(stack: FrameArc<Stack<'_, E>>, exit: Exit) -> Result<(), FirstFailure<E>> {
    let mut first: Option<(CleanupId, E, String)> = None;
    let mut first_panic = None;
    while let Some(Entry { whose, mut begin }) = stack.pop() {
        let wanted = exit.is_clean() && first.is_none() && first_panic.is_none();
        let ended = match Panic::catch(|| begin((exit.clone(), wanted))) {
            Ok(Some(clean_up)) => {
                let under_way = UnderWay(Some(whose));
                let ended = clean_up.await;
                under_way.has_ended();
                ended
            }
            Ok(None) => {
                whose.report(ProblemKind::NotGivenBack);
                Ended::Nothing
            }
            Err(panic) => Ended::Panic(panic),
        };
        match ended {
            Ended::Nothing => {}
            Ended::Error(error, words) => first = Some((whose, error, words)),
            Ended::Panic(panic) if first_panic.is_none() && (exit.is_clean() || exit.is_stopped()) => {
                first_panic = Some(panic);
            }
            Ended::Panic(panic) => whose.report(ProblemKind::Panicked(&panic)),
        }
    }
    match (first_panic, first) {
        (None, None) => Ok(()),
        (None, Some((_, error, _))) => Err(FirstFailure(error)),
        (Some(panic), None) => panic.resume(),
        (Some(panic), Some((whose, _, words))) => {
            whose.report(ProblemKind::Failed(&words));
            panic.resume()
        }
    }
}

/// Guard of a running clean-up: reports if it is dropped before the end.
pub(super) struct UnderWay(pub(super) Option<CleanupId>);

impl UnderWay {
    /// Ends the guard without a report.
    pub(super) fn has_ended(mut self) {
        self.0 = None;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(whose) = self.0 {
            whose.report(ProblemKind::CutShort);
        }
    }
}

/// Error of the first clean-up of [`cleanups`](super::cleanups) that failed, converted to the error type of
/// the body.
#[derive(Debug)]
pub struct FirstFailure<E>(E);

#[diagnostic::do_not_recommend]
impl<T, E> CleanupFailure<Result<T, E>> for FirstFailure<E> {
    type Output = Result<T, E>;

    fn go_on(output: Result<T, E>) -> Result<T, E> {
        output
    }

    fn fail(self, output: Result<T, E>) -> (Result<T, E>, Option<Self>) {
        match output {
            Ok(_) => (Err(self.0), None),
            failed => (failed, Some(self)),
        }
    }
}

impl<E> fmt::Display for FirstFailure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a clean-up failed")
    }
}
