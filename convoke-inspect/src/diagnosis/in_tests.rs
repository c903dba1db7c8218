//! On by default where programs are tested: begun by the first run of the testing kit, for as long as the process lasts.

use std::sync::OnceLock;
use std::time::Duration;

use super::{Diagnosing, Diagnosis};

/// A machine that runs tests is busy: what takes less is no news there.
const STALL_LIMIT: Duration = Duration::from_secs(2);

/// Watches the process from now on. Nothing is watched if the system has no thread left.
pub fn in_tests() {
    static WATCHED: OnceLock<Option<Diagnosing>> = OnceLock::new();
    WATCHED.get_or_init(|| Diagnosis::new().stall_limit(STALL_LIMIT).every_lock(true).start().ok());
}
