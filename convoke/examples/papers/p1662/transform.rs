//! P1662R0, *Forwards compatibility issues*: an algorithm over awaitables must not
//! lose the clean-up of what it awaits.
//!
//! The paper's first `transform`, forty lines of awaiter, does lose it. An
//! algorithm that is an `async fn` cannot. `IntoFuture` admits senders too.

use std::sync::Mutex;

use convoke::prelude::*;
use convoke::sender::prelude::*;

async fn transform<A, T>(awaitable: A, func: impl FnOnce(A::Output) -> T) -> T
where
    A: IntoFuture,
{
    func(awaitable.await)
}

pub(crate) fn run() -> String {
    let log = Mutex::new(Vec::new());
    let clean_up = async |_| log.lock().unwrap().push("cleaned up");
    let outcome = block_on(async {
        let of_a_scope = transform(ensure(clean_up, async { 20 }), |n| 2 * n).await;
        let of_a_sender = transform(just(1), |n| 2 * n).await;
        of_a_scope + of_a_sender
    });
    format!("{}, {}", outcome.unwrap(), log.lock().unwrap().join(", "))
}
