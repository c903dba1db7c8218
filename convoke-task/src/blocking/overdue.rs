//! Blocking work that nobody waits for any more: the hook of the process.

use core::fmt;
use core::panic::Location;
use std::sync::{Arc, PoisonError, RwLock};

use convoke_core::Panic;

/// Blocking work that was asked to stop and has not: it still has its thread.
#[derive(Debug)]
#[non_exhaustive]
pub struct Overdue<'a> {
    /// Its name, if it has one.
    pub name: Option<&'a str>,
    /// Where it was started.
    pub place: &'static Location<'static>,
}

impl fmt::Display for Overdue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("blocking work ")?;
        if let Some(name) = self.name {
            write!(f, "`{name}` ")?;
        }
        write!(f, "(at {}) was asked to stop and has not; it is left to its thread", self.place)
    }
}

type Hook = dyn Fn(&Overdue<'_>) + Send + Sync;

static HOOK: RwLock<Option<Arc<Hook>>> = RwLock::new(None);

/// Sets what is called, in the whole process, when the grace period of blocking work is over. Without a hook one line is
/// written to the error stream. A panic of the hook is caught.
///
/// ```
/// convoke::executor::set_overdue_hook(|overdue| eprintln!("my program: {overdue}"));
/// ```
pub fn set_overdue_hook(hook: impl Fn(&Overdue<'_>) + Send + Sync + 'static) {
    let before = HOOK.write().unwrap_or_else(PoisonError::into_inner).replace(Arc::new(hook));
    // Without the lock: what it holds may set another when it goes.
    drop(before);
}

#[cold]
pub(super) fn report(overdue: &Overdue<'_>) {
    // Not called under the lock: a hook may set another.
    let hook = HOOK.read().unwrap_or_else(PoisonError::into_inner).clone();
    // We may be in a destructor of a thread that panics; the panic hook has told of a panic here.
    let _ = Panic::catch(|| match hook {
        Some(hook) => hook(overdue),
        None => eprintln!("convoke: {overdue}"),
    });
}
