//! Clean-up that failed or was skipped, where there is nobody else to tell: the hook of the process.

use core::fmt;
use core::panic::Location;
use std::sync::{Arc, PoisonError, RwLock};

use convoke_core::{Panic, StopReason};

/// What went wrong with a clean-up, and could not be returned to anybody.
#[derive(Debug)]
#[non_exhaustive]
pub struct CleanupProblem<'a> {
    /// What was to be cleaned up: the name of the resource's type, or of the clean-up's.
    pub what: &'static str,
    /// Where `using`, `ensure` or `push` was called, or a service was made.
    pub place: &'static Location<'static>,
    /// What happened.
    pub kind: ProblemKind<'a>,
}

/// What happened to a clean-up.
#[non_exhaustive]
pub enum ProblemKind<'a> {
    /// The future was dropped in flight: the clean-up did not run. Destructors did.
    Skipped,
    /// The future was dropped while the clean-up ran.
    CutShort,
    /// The body has moved the resource away, or leaked it: there was nothing to close.
    NotGivenBack,
    /// It failed, after a body whose own error, stop or panic goes on.
    Failed(&'a dyn fmt::Display),
    /// It panicked, after a body whose own error or panic goes on.
    Panicked(&'a Panic),
    /// It ended by the stopped door: by itself, or for this reason.
    Stopped(Option<StopReason>),
}

impl fmt::Display for ProblemKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skipped => f.write_str("was skipped: its future was dropped before the body had ended"),
            Self::CutShort => f.write_str("was cut short: its future was dropped while it ran"),
            Self::NotGivenBack => f.write_str("was skipped: the body has kept the resource"),
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

/// Sets what is called, in the whole process, when a clean-up was skipped, or failed where its failure has nobody to go
/// to. Without a hook one line is written to the error stream.
///
/// The hook is called on the thread where it happened, possibly in a destructor. A panic of its own is caught.
///
/// ```
/// convoke::cleanup::set_cleanup_hook(|problem| eprintln!("my program: {problem}"));
/// ```
pub fn set_cleanup_hook(hook: impl Fn(&CleanupProblem<'_>) + Send + Sync + 'static) {
    let before = HOOK.write().unwrap_or_else(PoisonError::into_inner).replace(Arc::new(hook));
    // Without the lock: what it holds may set another when it goes.
    drop(before);
}

#[cfg(feature = "testing")]
thread_local! {
    static SKIPPED_ON_PURPOSE: core::cell::Cell<bool> = const { core::cell::Cell::new(false) };
}

/// Calls `f`. Clean-up that is skipped or cut short meanwhile, on this thread, is meant to be, and nobody is told: for
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
fn is_meant(kind: &ProblemKind<'_>) -> bool {
    SKIPPED_ON_PURPOSE.get() && matches!(kind, ProblemKind::Skipped | ProblemKind::CutShort)
}

#[cfg(not(feature = "testing"))]
fn is_meant(_: &ProblemKind<'_>) -> bool {
    false
}

/// Whose clean-up it is, for reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whose {
    pub(super) what: &'static str,
    pub(super) place: &'static Location<'static>,
}

impl Whose {
    #[cold]
    pub(super) fn report(self, kind: ProblemKind<'_>) {
        if is_meant(&kind) {
            return;
        }
        let problem = CleanupProblem { what: self.what, place: self.place, kind };
        // Not called under the lock: a hook may set another.
        let hook = HOOK.read().unwrap_or_else(PoisonError::into_inner).clone();
        let told = match hook {
            Some(hook) => Panic::catch(|| hook(&problem)),
            None => Panic::catch(|| eprintln!("convoke: {problem}")),
        };
        if let Err(panic) = told {
            // We may be in a destructor of a thread that panics.
            let _ =
                Panic::catch(|| eprintln!("convoke: the clean-up hook {panic}; it was told that {problem}"));
        }
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    #[test]
    fn a_hook_that_is_replaced_may_report_when_it_is_dropped() {
        struct Reports(Whose);
        impl Drop for Reports {
            fn drop(&mut self) {
                self.0.report(ProblemKind::Skipped);
            }
        }
        let reports = Reports(Whose { what: "a hook", place: Location::caller() });
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
        struct Reports(Whose);
        impl Drop for Reports {
            fn drop(&mut self) {
                self.0.report(ProblemKind::Skipped);
            }
        }
        set_cleanup_hook(|problem| panic!("no room for: {problem}"));
        let whose = Whose { what: "a thing", place: Location::caller() };
        whose.report(ProblemKind::CutShort);
        let panic = Panic::catch(|| {
            let _reports = Reports(whose);
            panic!("first");
        });
        assert_eq!(panic.unwrap_err().message(), "first");
        *HOOK.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
