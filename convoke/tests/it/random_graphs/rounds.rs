//! Parts of a graph that repeat something.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke::sender::prelude::*;

use crate::random_graphs::build::{Work, World, build};
use crate::random_graphs::plan::{Kind, Plan};

/// Returns the number of repetitions.
pub(crate) fn times(plan: &Plan) -> usize {
    plan.n % 4
}

pub(crate) fn rounds(plan: &Plan, world: &World) -> Work {
    let (boom, below, token, last) = (plan.boom, plan.children[0].clone(), world.token(), world.token());
    let (count, world) = (times(plan), world.clone());
    match plan.kind {
        Kind::RepeatN => repeat_n(count, move |_| {
            token.touch();
            build(&below, &world).then(world.step(boom)).then(drop)
        })
        .then(move |()| last.ledger().counted(0))
        .boxed(),
        Kind::RepeatUntil => {
            let mut left = count;
            repeat_until(move || {
                token.touch();
                let Some(less) = left.checked_sub(1) else {
                    return just(ControlFlow::Break(token.ledger().counted(0))).may_fail().boxed();
                };
                left = less;
                build(&below, &world).then(world.step(boom)).then(|_| ControlFlow::Continue(())).boxed()
            })
            .boxed()
        }
        Kind::Retry => retry_sender(
            move |_| {
                token.touch();
                build(&below, &world)
            },
            move |attempt, fault| {
                fault.token.touch();
                last.touch_or_panic(boom);
                (attempt as usize) < count
            },
        )
        .boxed(),
        _ => {
            let calls = Arc::new(AtomicUsize::new(0));
            let counted = calls.clone();
            let call = move |index, value: &crate::random_graphs::ledger::Word| {
                value.token.touch();
                token.touch_or_panic(boom && index == 1);
                counted.fetch_add(1, Ordering::AcqRel);
            };
            let count = 2 + plan.n * plan.n;
            build(&below, &world)
                .bulk(count, call)
                .then(move |value| {
                    let calls = calls.load(Ordering::Acquire);
                    if calls != count {
                        last.ledger().complain(format!("bulk made {calls} of {count} calls"));
                    }
                    value
                })
                .boxed()
        }
    }
}
