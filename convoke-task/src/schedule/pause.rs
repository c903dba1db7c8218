//! The pause between two attempts. Other tasks run in between, also if its length is zero.

use core::time::Duration;

use crate::flow::checkpoint;
use convoke_exec::time::sleep;

/// Waits for `duration`, and lets other tasks run. A sleep of zero does not suspend its task: attempts that
/// fail at once would follow each other in one poll, in which a stop request is not seen.
pub(crate) async fn pause(duration: Duration) {
    if duration.is_zero() {
        checkpoint().await;
    } else {
        sleep(duration).await;
    }
}
