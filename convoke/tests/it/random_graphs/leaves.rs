//! The leaves of a graph.

use convoke::sender::prelude::*;

use crate::random_graphs::build::{Work, World, at};
use crate::random_graphs::ledger::{Fault, Word};
use crate::random_graphs::plan::{Kind, Plan};
use crate::random_graphs::threads::{Job, THREADS, spin};

pub(crate) fn leaf(plan: &Plan, world: &World) -> Work {
    let (token, boom, n) = (world.token(), plan.boom, plan.n);
    match plan.kind {
        Kind::JustError => just_error(token.ledger().counted(n as u32)).boxed(),
        Kind::JustStopped => just_stopped().then(held(world)).may_fail().boxed(),
        Kind::JustFrom => just_from(move || {
            token.touch_or_panic(boom);
            token.ledger().counted(n as u64)
        })
        .may_fail()
        .boxed(),
        Kind::Schedule => at!(plan.place, executor => schedule(&executor)
            .then(move |()| {
                token.touch_or_panic(boom);
                token.ledger().counted(n as u64)
            })
            .may_fail()
            .boxed()),
        Kind::Callback => from_callback(move |completion: Completion<Word, Fault>| {
            // Created here, so that nothing is left to drop when it has completed.
            let outcome = match n % 4 {
                1 => Outcome::Error(token.ledger().counted(n as u32)),
                2 => Outcome::Stopped,
                _ => Outcome::Value(token.ledger().counted(n as u64)),
            };
            let job = move || {
                spin(n * 20);
                completion.complete(outcome);
            };
            // A small `n` completes before the function returns, a larger one on the helper thread.
            match n {
                0..3 => job(),
                _ => THREADS.helper.send(Job::run(job)).unwrap(),
            }
            token.touch_or_panic(boom);
        })
        .boxed(),
        Kind::CallbackDropped => from_callback(move |completion: Completion<Word, Fault>| {
            match n % 2 {
                0 => drop(completion),
                _ => THREADS.helper.send(Job::run(move || drop(completion))).unwrap(),
            }
            token.touch_or_panic(boom);
        })
        .boxed(),
        Kind::Look => read_env(move |env| {
            token.touch();
            match env.stop().stop_requested() {
                true => Outcome::Stopped,
                false => Outcome::Value(token.ledger().counted(n as u64)),
            }
        })
        .dematerialize()
        .boxed(),
        Kind::Never => never()
            .then(held(world))
            .may_fail()
            .let_stopped(move || {
                read_env(move |env| {
                    if !env.stop().stop_requested() {
                        token.ledger().complain("what never ends has ended without a stop");
                    }
                    Outcome::Stopped
                })
                .dematerialize()
            })
            .boxed(),
        Kind::UntilStopped => from_callback(move |completion| {
            token.touch();
            THREADS.helper.send(Job::UntilStopped(completion)).unwrap();
        })
        .boxed(),
        _ => just(token.ledger().counted(n as u64)).may_fail().boxed(),
    }
}

/// Returns the identity function, which holds a token.
fn held(world: &World) -> impl FnOnce(Word) -> Word + Send + 'static {
    let token = world.token();
    move |value| {
        token.touch();
        value
    }
}
