//! Executors of the program that panic when a sender compares them or posts to them.
use convoke_core::raw::Runnable;
use convoke_core::testing::ByHand;
use convoke_sender::prelude::*;
use convoke_sender::testing::{Connected, Gate};

/// An executor that panics in the function that it names.
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
    // A bulk of zero completes where it is, so that `affine_on` compares the executors.
    let sender = just(()).bulk(0, |_, ()| ()).affine_on(&broken);
    let running = Connected::with_env(gate.sender().let_value(move |()| sender), Env::from(broken)).start();
    gate.complete(Outcome::Value(()));
    assert_eq!(running.outcome(), Outcome::Panicked(Panic::new("broken eq")));
}

#[test]
fn a_bulk_whose_helpers_cannot_be_posted_ends_with_the_panic() {
    for function in ["post", "parallelism"] {
        let sender = just(()).bulk(100, |_, ()| ());
        let env = Env::from(Broken(ByHand::new(), function));
        let gate = Gate::<()>::new();
        let running = Connected::with_env(gate.sender().let_value(move |()| sender), env).start();
        gate.complete(Outcome::Value(()));
        let expected = Panic::new(format!("broken {function}"));
        assert_eq!(running.outcome(), Outcome::Panicked(expected));
    }
}
