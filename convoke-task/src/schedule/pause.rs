//! The wait between two attempts. Others run in between, also if it has no length.

use core::time::Duration;

use crate::flow::checkpoint;
use convoke_exec::time::sleep;

/// Waits for so long, and lets others run. A sleep that is over when it begins does not suspend its task; attempts that fail at once
/// would then follow each other in one poll, in which nobody is heard who asks for a stop.
pub(crate) async fn pause(duration: Duration) {
    if duration.is_zero() {
        checkpoint().await;
    } else {
        sleep(duration).await;
    }
}
