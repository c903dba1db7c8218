//! Clean-up that failed or was skipped, and whose failure cannot be returned: the hook of the process.

use core::fmt;
use core::panic::Location;
use std::sync::{Arc, PoisonError, RwLock};

use convoke_core::{Panic, StopReason};

/// Problem of a clean-up that could not be returned to a caller.
#[derive(Debug)]
#[non_exhaustive]
pub struct CleanupProblem<'a> {
    /// Name of the type of the resource, or of the clean-up.
    pub what: &'static str,
    /// Line that called `using`, `ensure` or `push`, or created the service.
    pub place: &'static Location<'static>,
    /// Kind of the problem, with its error, panic or stop reason.
    pub kind: ProblemKind<'a>,
}

/// Kind of a [`CleanupProblem`].
#[non_exhaustive]
pub enum ProblemKind<'a> {
    /// The future was dropped before the body had ended: the clean-up did not run. Destructors did.
    Skipped,
    /// The future was dropped while the clean-up ran.
    CutShort,
    /// The body moved the resource away, or leaked it, so that it could not be closed.
    NotGivenBack,
    /// The clean-up failed, and the body's own error, stop or panic is the outcome.
    Failed(&'a dyn fmt::Display),
    /// The clean-up panicked, and the body's own error or panic is the outcome.
    Panicked(&'a Panic),
    /// The clean-up was stopped, with this reason; or it stopped by itself.
    Stopped(Option<StopReason>),
}

impl fmt::Display for ProblemKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skipped => f.write_str("was skipped: its future was dropped before the body had ended"),
            Self::CutShort => f.write_str("was cut short: its future was dropped while it ran"),
            Self::NotGivenBack => f.write_str("was skipped: the body did not return the resource"),
            Self::Failed(error) => write!(f, "failed: {error}"),
            Self::Panicked(panic) => write!(f, "{panic}"),
            Self::Stopped(Some(reason)) => write!(f, "was stopped before it had ended: {reason}"),
            Self::Stopped(None) => f.write_str("stopped by itself before it had ended"),
        }
    }
}

impl fmt::Debug for ProblemKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for CleanupProblem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the clean-up of {} (at {}) {}", self.what, self.place, self.kind)
    }
}

type Hook = dyn Fn(&CleanupProblem<'_>) + Send + Sync;

static HOOK: RwLock<Option<Arc<Hook>>> = RwLock::new(None);

/// Sets the hook of the process for clean-ups that were skipped, or whose failure cannot be returned. Without
/// a hook, one line is written to stderr.
///
/// The hook is called on the thread where it happens, possibly in a destructor. A panic of the hook is caught.
///
/// ```
/// convoke::cleanup::set_cleanup_hook(|problem| eprintln!("my program: {problem}"));
/// ```
pub fn set_cleanup_hook(hook: impl Fn(&CleanupProblem<'_>) + Send + Sync + 'static) {
    let before = HOOK.write().unwrap_or_else(PoisonError::into_inner).replace(Arc::new(hook));
    // Dropped without the lock: its destructor may set another hook.
    drop(before);
}

#[cfg(feature = "testing")]
thread_local! {
    static SKIPPED_ON_PURPOSE: core::cell::Cell<bool> = const { core::cell::Cell::new(false) };
}

/// Calls `f`, and does not report clean-ups that are skipped or cut short on this thread meanwhile. For
/// simulations, whose hosts crash.
#[cfg(feature = "testing")]
pub fn skipping_clean_up<R>(f: impl FnOnce() -> R) -> R {
    struct Before(bool);

    impl Drop for Before {
        fn drop(&mut self) {
            SKIPPED_ON_PURPOSE.set(self.0);
        }
    }

    let _before = Before(SKIPPED_ON_PURPOSE.replace(true));
    f()
}

#[cfg(feature = "testing")]
fn is_intended(kind: &ProblemKind<'_>) -> bool {
    SKIPPED_ON_PURPOSE.get() && matches!(kind, ProblemKind::Skipped | ProblemKind::CutShort)
}

#[cfg(not(feature = "testing"))]
fn is_intended(_: &ProblemKind<'_>) -> bool {
    false
}

/// Identity of a clean-up in reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct CleanupId {
    pub(super) what: &'static str,
    pub(super) location: &'static Location<'static>,
}

impl CleanupId {
    /// Reports a problem to the hook, or else on stderr.
    #[cold]
    pub(super) fn report(self, kind: ProblemKind<'_>) {
        if is_intended(&kind) {
            return;
        }
        let problem = CleanupProblem { what: self.what, place: self.location, kind };
        // Called without the lock: a hook may set another.
        let hook = HOOK.read().unwrap_or_else(PoisonError::into_inner).clone();
        let reported = match hook {
            Some(hook) => Panic::catch(|| hook(&problem)),
            None => Panic::catch(|| eprintln!("convoke: {problem}")),
        };
        if let Err(panic) = reported {
            // Caught as well: this may run in a destructor of a thread that panics.
            let _ = Panic::catch(|| {
                eprintln!("convoke: the clean-up hook {panic}; it was called because {problem}")
            });
        }
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    #[test]
    fn a_hook_that_is_replaced_may_report_when_it_is_dropped() {
        struct Reports(CleanupId);
        impl Drop for Reports {
            fn drop(&mut self) {
                self.0.report(ProblemKind::Skipped);
            }
        }
        let reports = Reports(CleanupId { what: "a hook", location: Location::caller() });
        set_cleanup_hook(move |_| {
            let _kept = &reports;
        });
        let (said, heard) = std::sync::mpsc::channel();
        set_cleanup_hook(move |problem| said.send(problem.to_string()).unwrap());
        assert!(heard.try_recv().is_ok_and(|problem| problem.contains("a hook")));
        *HOOK.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    #[test]
    fn a_hook_that_panics_ends_nothing_even_while_panicking() {
        struct Reports(CleanupId);
        impl Drop for Reports {
            fn drop(&mut self) {
                self.0.report(ProblemKind::Skipped);
            }
        }
        // Not `panic!`: a panic while panicking prints a backtrace, which takes minutes under Miri.
        set_cleanup_hook(|problem| std::panic::resume_unwind(Box::new(problem.to_string())));
        let whose = CleanupId { what: "a thing", location: Location::caller() };
        whose.report(ProblemKind::CutShort);
        let panic = Panic::catch(|| {
            let _reports = Reports(whose);
            panic!("first");
        });
        assert_eq!(panic.unwrap_err().message(), "first");
        *HOOK.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
