//! Executors of the program's that panic where they are asked something on the way to a receiver.
use convoke_core::raw::Runnable;
use convoke_core::testing::ByHand;
use convoke_sender::prelude::*;
use convoke_sender::testing::{Connected, Gate};

/// Panics where it is told to.
#[derive(Clone)]
struct Broken(ByHand, &'static str);

impl PartialEq for Broken {
    fn eq(&self, _: &Self) -> bool {
        assert!(self.1 != "eq", "broken eq");
        true
    }
}

impl Executor for Broken {
    fn post(&self, runnable: Runnable) {
        assert!(self.1 != "post", "broken post");
        self.0.post(runnable);
    }

    fn parallelism(&self) -> usize {
        assert!(self.1 != "parallelism", "broken parallelism");
        4
    }
}

#[test]
fn equality_that_panics_is_the_outcome() {
    let broken = Broken(ByHand::new(), "eq");
    let gate = Gate::<()>::new();
    // Bulk over nothing is "here", so that the executors are compared.
    let sender = just(()).bulk(0, |_, ()| ()).affine_on(&broken);
    let running = Connected::with_env(gate.sender().let_value(move |()| sender), Env::from(broken)).start();
    gate.complete(Outcome::Value(()));
    assert_eq!(running.outcome(), Outcome::Panicked(Panic::new("broken eq")));
}

#[test]
fn helpers_of_a_bulk_that_cannot_be_posted_leave_and_the_panic_is_the_outcome() {
    for place in ["post", "parallelism"] {
        let sender = just(()).bulk(100, |_, ()| ());
        let env = Env::from(Broken(ByHand::new(), place));
        let gate = Gate::<()>::new();
        let running = Connected::with_env(gate.sender().let_value(move |()| sender), env).start();
        gate.complete(Outcome::Value(()));
        let expected = Panic::new(format!("broken {place}"));
        assert_eq!(running.outcome(), Outcome::Panicked(expected));
    }
}
