//! P3149R1 §5.6: a nested sender that is kept, and not started, keeps the join
//! waiting.
//!
//! That is so here, too. What waits for itself like this is seen in `use_count`;
//! the program below looks, lets the sender go, and the join ends.

use convoke::prelude::*;
use convoke::sender::prelude::*;

pub(crate) fn run() -> String {
    let scope = CountingScope::new();
    let nested = scope.nest(just(()));
    let outcome = block_on(async {
        let look = async {
            let (count, joining) = (scope.use_count(), scope.join_started());
            drop(nested); // Without this, the join never ends.
            format!("joining: {joining}, waits for {count}")
        };
        let ((), seen) = join((scope.join().into_future(), look)).await;
        format!("{seen}; joined: {}", scope.joined())
    });
    outcome.unwrap()
}
