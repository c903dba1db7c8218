//! The inner parts of a graph: from a plan to a sender.

use std::sync::Arc;

use convoke::env::{Changes, Local};
use convoke::sender::prelude::*;

use crate::random_graphs::leaves::leaf;
use crate::random_graphs::ledger::{Fault, Ledger, Token, Word};
use crate::random_graphs::plan::{Kind, Plan};
use crate::random_graphs::rounds::rounds;
use crate::random_graphs::threads::{Job, THREADS, spin};
use crate::random_graphs::together::together;

pub(crate) type Work = AnySender<Word, Fault>;

static HELD: Local<Token> = Local::inherited("held");

/// A handle to the counters of a graph.
#[derive(Clone, Debug)]
pub(crate) struct World(pub(crate) Arc<Ledger>);

impl World {
    pub(crate) fn token(&self) -> Token {
        self.0.token()
    }

    /// Returns a closure that changes a value, holds a token, and may panic.
    pub(crate) fn step<T>(&self, boom: bool) -> impl FnOnce(T) -> T + Send + use<T> {
        let token = self.token();
        move |value| {
            token.touch_or_panic(boom);
            value
        }
    }

    /// Returns a closure that creates the sender of a plan, holds a token, and may panic.
    pub(crate) fn make<T>(&self, plan: &Arc<Plan>, boom: bool) -> impl FnOnce(T) -> Work + Send + 'static {
        let (token, world, plan) = (self.token(), self.clone(), plan.clone());
        move |_| {
            token.touch_or_panic(boom);
            build(&plan, &world)
        }
    }
}

/// Evaluates an expression with the executor of a place, by its concrete type.
macro_rules! at {
    ($place:expr, $executor:ident => $body:expr) => {{
        use crate::random_graphs::plan::Place;
        use crate::random_graphs::threads::THREADS as T;
        match $place {
            Place::One => {
                let $executor = T.one.executor();
                $body
            }
            Place::Two => {
                let $executor = T.two.executor();
                $body
            }
            Place::Prior(priority) => {
                let $executor = T.two.executor().with_priority(priority);
                $body
            }
            Place::Strand => {
                let $executor = T.strand.clone();
                $body
            }
            Place::Limited => {
                let $executor = T.limited.clone();
                $body
            }
            Place::Inline => {
                let $executor = convoke::executor::InlineExecutor;
                $body
            }
            Place::Erased => {
                let $executor = convoke::executor::ExecutorRef::new(T.two.executor());
                $body
            }
        }
    }};
}
pub(crate) use at;

pub(crate) fn build(plan: &Arc<Plan>, world: &World) -> Work {
    let (boom, n, place) = (plan.boom, plan.n, plan.place);
    let Some(below) = plan.children.first().cloned() else { return leaf(plan, world) };
    let token = world.token();
    let child = || build(&below, world);
    match plan.kind {
        Kind::Then => child().then(world.step(boom)).boxed(),
        Kind::MapError => child().map_error(world.step(boom)).boxed(),
        Kind::UponError => child()
            .upon_error(move |fault| {
                token.touch_or_panic(boom);
                fault.token.ledger().counted(u64::from(fault.what))
            })
            .may_fail()
            .boxed(),
        Kind::UponStopped => child()
            .upon_stopped(move || {
                token.touch_or_panic(boom);
                token.ledger().counted(0)
            })
            .boxed(),
        Kind::StoppedAsOption => child()
            .stopped_as_option()
            .then(move |value| {
                token.touch_or_panic(boom && value.is_none());
                value.unwrap_or_else(|| token.ledger().counted(0))
            })
            .boxed(),
        Kind::StoppedAsError => child().stopped_as_error(token.ledger().counted(0)).boxed(),
        Kind::IntoResult => child().into_result().then(world.step(false)).transpose().boxed(),
        Kind::Materialize => {
            let outcome = child().materialize().then(world.step(false));
            at!(place, executor => outcome.continues_on(&executor).dematerialize().boxed())
        }
        Kind::Either if n % 2 == 0 => Either::<_, Just<_>>::Left(child().into_result()).transpose().boxed(),
        Kind::Either => Either::<Just<_>, _>::Right(child().into_result()).transpose().boxed(),
        Kind::StartsOn => at!(place, executor => child().starts_on(&executor).boxed()),
        Kind::ContinuesOn => at!(place, executor => child().continues_on(&executor).boxed()),
        Kind::On => at!(place, executor => child().on(&executor).boxed()),
        Kind::AffineOn => at!(place, executor => child().affine_on(&executor).boxed()),
        Kind::Finally => {
            let pair = world.0.pair("clean-up");
            let (begun, make) = (pair.clone(), world.make(&below, false));
            let work = defer(move || {
                begun.begin();
                make(())
            });
            work.finally(clean_up(plan, token, move || pair.end())).boxed()
        }
        Kind::Unstoppable => child().unstoppable().boxed(),
        Kind::WriteEnv => {
            let mut changes = Changes::new().local(&HELD, token);
            if plan.has_own_stop() {
                changes = changes.stop_token(StopSource::new().token());
            }
            if n % 2 == 0 {
                changes = at!(place, executor => changes.executor(executor));
            }
            child().write_env(changes).boxed()
        }
        Kind::Defer => {
            let make = world.make(&below, boom);
            defer(move || make(())).boxed()
        }
        Kind::LetWith => {
            let make = world.make(&below, boom);
            let_with(move || token, make).boxed()
        }
        Kind::LetWithStopSource => let_with_stop_source({
            let work = child();
            move |source| {
                let last = token.clone();
                let stop = move |()| {
                    token.touch();
                    source.request_stop(StopReason::Requested);
                };
                let stopping = match n % 3 {
                    0 => just(()).then(stop).may_fail().boxed(),
                    1 => from_callback(move |completion: Completion<(), Fault>| {
                        let job = move || {
                            spin(n * 20);
                            stop(());
                            // Nothing is left to drop when it has completed.
                            drop(stop);
                            completion.value(());
                        };
                        THREADS.helper.send(Job::run(job)).unwrap();
                    })
                    .boxed(),
                    _ => at!(place, executor => schedule(&executor).then(stop).may_fail().boxed()),
                };
                when_all((work, stopping)).then(move |(value, ())| {
                    last.touch();
                    value
                })
            }
        })
        .boxed(),
        Kind::RepeatN | Kind::RepeatUntil | Kind::Retry | Kind::Bulk => rounds(plan, world),
        _ => together(plan, world),
    }
}

/// Returns clean-up that is counted and runs on some executor, and then completes without a change to the
/// outcome, or panics.
pub(crate) fn clean_up(
    plan: &Plan,
    token: Token,
    end: impl FnOnce() + Send + 'static,
) -> impl Sender<Value = (), Error = Never> + 'static {
    let (boom, n) = (plan.boom, plan.n);
    let end = move |()| {
        end();
        token.touch_or_panic(boom);
    };
    match n % 4 {
        0 => just(()).then(end).boxed(),
        1 => just(()).then(end).let_value(|()| just_stopped()).boxed(),
        2 => from_callback(|completion: Completion<()>| {
            THREADS.helper.send(Job::run(move || completion.value(()))).unwrap();
        })
        .then(end)
        .boxed(),
        _ => at!(plan.place, executor => schedule(&executor).then(end).boxed()),
    }
}
