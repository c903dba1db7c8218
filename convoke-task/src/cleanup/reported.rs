//! Clean-up after which nothing comes that could be told of it: a service's end. Whatever it has to say goes to the hook.

use core::future::{Future, poll_fn};
use core::panic::Location;
use core::pin::pin;

use convoke_core::raw::Frame;

use super::closing::Closing;
use super::grace::Grace;
use super::problem::{ProblemKind, Whose};
use super::stack::UnderWay;

/// Runs a clean-up, shielded from the stop and with a grace period, and goes on whatever comes of it.
pub(crate) async fn reported(
    what: &'static str,
    place: &'static Location<'static>,
    clean_up: impl Future<Output = ()>,
) {
    let whose = Whose { what, place };
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

/// Tells the hook what went wrong with the end of something.
#[cold]
pub(crate) fn report_problem(what: &'static str, place: &'static Location<'static>, kind: ProblemKind<'_>) {
    Whose { what, place }.report(kind);
}
