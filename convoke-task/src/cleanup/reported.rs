//! Clean-up without a body, whose failures all go to the hook: the end of a service.

use core::future::{Future, poll_fn};
use core::panic::Location;
use core::pin::{Pin, pin};

use convoke_core::raw::Frame;

use super::closing::Closing;
use super::grace::Grace;
use super::problem::{CleanupId, ProblemKind};
use super::stack::UnderWay;

/// Runs a clean-up, shielded from stop requests and with a grace period. Reports its failure, stop or panic,
/// and completes.
pub(crate) async fn reported(
    what: &'static str,
    location: &'static Location<'static>,
    // Boxed: a service ends once, and the code below is long.
    clean_up: Pin<Box<dyn Future<Output = ()> + Send + '_>>,
) {
    let whose = CleanupId { what, location };
    let under_way = UnderWay(Some(whose));
    let mut closing = pin!(Closing::shielded(clean_up, Grace::new(None)));
    let closed = poll_fn(|cx| {
        let closed = closing.as_mut().poll(cx);
        if closed.is_pending() {
            Frame::hold_current();
        }
        closed
    })
    .await;
    under_way.has_ended();
    if let Some(problem) = closed.problem() {
        whose.report(problem);
    }
}

/// Reports a problem of a clean-up to the hook.
#[cold]
pub fn report_problem(what: &'static str, location: &'static Location<'static>, kind: ProblemKind<'_>) {
    CleanupId { what, location }.report(kind);
}
