//! Parts of a graph with several children.

use convoke::sender::prelude::*;

use crate::random_graphs::build::{Work, World, build, clean_up};
use crate::random_graphs::ledger::Word;
use crate::random_graphs::plan::{Kind, Plan};

pub(crate) fn together(plan: &Plan, world: &World) -> Work {
    let (boom, n, children) = (plan.boom, plan.n, &plan.children);
    let (token, child) = (world.token(), |i: usize| build(&children[i], world));
    match plan.kind {
        Kind::LetValue => child(0).let_value(world.make(&children[1], boom)).boxed(),
        Kind::LetError => child(0).let_error(world.make(&children[1], boom)).boxed(),
        Kind::LetStopped => {
            let make = world.make(&children[1], boom);
            child(0).let_stopped(move || make(())).boxed()
        }
        Kind::Sequence => {
            let first = child(0).then(world.step(boom)).then(drop);
            match n % 2 {
                0 => sequence((first, child(1))).boxed(),
                _ => sequence((just(()).may_fail(), first, child(1).then(drop), just(token).may_fail()))
                    .then(|token| token.ledger().counted(0))
                    .boxed(),
            }
        }
        Kind::StopWhen => child(0).stop_when(child(1)).boxed(),
        Kind::Within => {
            let pair = world.0.pair("exit");
            let entered = pair.clone();
            let enter = child(0).then(move |value| {
                entered.begin();
                value
            });
            let exit = clean_up(plan, token, move || pair.end());
            within(enter, world.make(&children[1], false), move |value| {
                value.token.touch();
                exit
            })
            .boxed()
        }
        Kind::ForkJoin => child(0)
            .fork_join((world.make(&children[1], boom), world.make(&children[2], false)))
            .then(|(a, b): (Word, Word)| a.and(b))
            .boxed(),
        Kind::Split => {
            let shared = child(0).split();
            let other = shared.clone().then(world.step(false));
            match n % 4 {
                0 => when_any((other, shared.then(world.step(false)))).boxed(),
                1 => sequence((other.then(drop), shared)).boxed(),
                2 => shared.boxed(),
                _ => when_all((other, shared)).then(|(a, b)| a.and(b)).boxed(),
            }
        }
        Kind::WhenAll => match (children.len(), n % 2) {
            (2, 0) => when_all((child(0), child(1))).then(|(a, b)| a.and(b)).boxed(),
            (3, 0) => when_all((child(0), child(1), child(2))).then(|(a, b, c)| a.and(b).and(c)).boxed(),
            (count, _) => when_all((0..count).map(child).collect::<Vec<_>>())
                .then(move |values| values.into_iter().fold(token.ledger().counted(0), Word::and))
                .boxed(),
        },
        _ => match (children.len(), n % 2) {
            (2, 0) => when_any((child(0), child(1))).boxed(),
            (3, 0) => when_any((child(0), child(1), child(2))).boxed(),
            (count, _) => when_any((0..count).map(child).collect::<Vec<_>>()).boxed(),
        },
    }
}
