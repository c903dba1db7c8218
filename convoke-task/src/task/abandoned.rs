//! Tasks that were asked to stop before they ran, because their handle was dropped. They are recorded while a diagnosis is
//! under way.

use core::panic::Location;

use convoke_core::raw::SpinLock;

/// Largest number of tasks that are recorded between two checks of a diagnosis. Others are not recorded.
const MOST_ABANDONED: usize = 64;

static ABANDONED: SpinLock<Vec<&'static Location<'static>>> = SpinLock::new(Vec::new());

/// Records a task that was spawned at `location`.
pub(super) fn record_abandoned(location: &'static Location<'static>) {
    let mut abandoned = ABANDONED.lock();
    if abandoned.len() < MOST_ABANDONED {
        abandoned.push(location);
    }
}

/// Takes what was recorded since the last call: where each task was spawned.
pub fn take_abandoned() -> Vec<&'static Location<'static>> {
    core::mem::take(&mut *ABANDONED.lock())
}
