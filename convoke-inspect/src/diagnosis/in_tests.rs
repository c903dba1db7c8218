//! The diagnosis that the testing kit starts at its first run. It lasts as long as the process.

use std::sync::OnceLock;
use std::time::Duration;

use super::{Diagnosing, Diagnosis};

/// A machine that runs tests is busy: shorter stalls are normal there. Under Miri a poll takes seconds, and so does each
/// check of the watchdog: it sleeps.
const STALL_LIMIT: Duration = Duration::from_secs(if cfg!(miri) { 24 * 3600 } else { 2 });

/// Watches the process from now on. Does nothing if the system cannot start a thread.
pub fn in_tests() {
    static WATCHED: OnceLock<Option<Diagnosing>> = OnceLock::new();
    WATCHED.get_or_init(|| Diagnosis::new().stall_limit(STALL_LIMIT).every_lock(true).start().ok());
}
