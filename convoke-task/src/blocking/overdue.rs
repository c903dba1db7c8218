//! The hook for blocking work that outlived its grace period.

use core::fmt;
use core::panic::Location;
use std::sync::{Arc, PoisonError, RwLock};

use convoke_core::Panic;

/// Blocking work that was asked to stop and did not: it still occupies its thread.
#[derive(Debug)]
#[non_exhaustive]
pub struct Overdue<'a> {
    /// Its name, if it has one.
    pub name: Option<&'a str>,
    /// The line that started it.
    pub place: &'static Location<'static>,
}

impl fmt::Display for Overdue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("blocking work ")?;
        if let Some(name) = self.name {
            write!(f, "`{name}` ")?;
        }
        write!(f, "(at {}) was asked to stop and did not; it is left running on its thread", self.place)
    }
}

type Hook = dyn Fn(&Overdue<'_>) + Send + Sync;

static HOOK: RwLock<Option<Arc<Hook>>> = RwLock::new(None);

/// Sets the hook that is called, in the whole process, when the grace period of blocking work is over.
/// Without a hook one line is written to the error stream. A panic of the hook is caught.
///
/// ```
/// convoke::executor::set_overdue_hook(|overdue| eprintln!("my program: {overdue}"));
/// ```
pub fn set_overdue_hook(hook: impl Fn(&Overdue<'_>) + Send + Sync + 'static) {
    let before = HOOK.write().unwrap_or_else(PoisonError::into_inner).replace(Arc::new(hook));
    // Without the lock: its destructor may set another hook.
    drop(before);
}

/// Calls the hook.
#[cold]
pub(super) fn report(overdue: &Overdue<'_>) {
    // Not called under the lock: a hook may set another.
    let hook = HOOK.read().unwrap_or_else(PoisonError::into_inner).clone();
    // This may run in a destructor during a panic; the panic hook has reported a panic of the hook.
    let _ = Panic::catch(|| match hook {
        Some(hook) => hook(overdue),
        None => eprintln!("convoke: {overdue}"),
    });
}
