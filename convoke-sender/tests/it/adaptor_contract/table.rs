//! The table of all adaptors.

use core::ops::ControlFlow;
use std::cell::Cell;

use convoke_core::InlineExecutor;
use convoke_core::env::Changes;
use convoke_core::testing::{DropCount, DropToken};
use convoke_sender::prelude::*;

/// The work that adaptors are tested with.
pub(super) type Work = AnySender<i32, &'static str>;
/// Its outcome.
pub(super) type End = Outcome<i32, &'static str>;

/// The outcomes after which a closure is called, and the adaptor with a closure that panics.
pub(super) type Panics = (fn(&End) -> bool, fn(Work) -> Work);

/// A row of the table.
pub(super) struct Adaptor {
    pub(super) name: &'static str,
    /// Wraps work. Each closure that the adaptor stores holds a token.
    pub(super) wrap: fn(Work, &Tokens) -> Work,
    /// Returns the outcome of the whole, from that of the work.
    pub(super) expect: fn(End) -> End,
    /// If it takes a closure: the outcomes of the work after which it is called, and the adaptor with one that
    /// panics.
    pub(super) panics: Option<Panics>,
    pub(super) stop: Stop,
    /// Returns the outcome of the whole if a stop is requested while the work runs, and the work ignores it.
    pub(super) after_ignored_stop: fn(End) -> End,
}

/// The effect of a stop request on the work.
pub(super) enum Stop {
    Reaches,
    IsShielded,
}

/// Counts the tokens that closures hold.
#[derive(Default)]
pub(super) struct Tokens {
    count: DropCount,
    made: Cell<usize>,
}

impl Tokens {
    fn token(&self) -> DropToken {
        self.made.set(self.made.get() + 1);
        self.count.token()
    }

    /// Returns `f` as a closure that holds a token.
    fn with<A, T, F: FnOnce(A) -> T + Send>(&self, f: F) -> impl FnOnce(A) -> T + Send + use<A, T, F> {
        let token = self.token();
        move |argument| {
            hold(&token);
            f(argument)
        }
    }

    /// Returns `f` as a closure that holds a token.
    fn with_none<T, F: FnOnce() -> T + Send>(&self, f: F) -> impl FnOnce() -> T + Send + use<T, F> {
        let f = self.with(|()| f());
        move || f(())
    }

    pub(super) fn assert_dropped(&self, name: &str) {
        assert_eq!(self.count.dropped(), self.made.get(), "{name}: closures are dropped");
    }
}

/// Is called in a closure, so that it captures the token.
fn hold(_: &DropToken) {}

fn boom<T>() -> T {
    Panic::new("closure").resume()
}

fn same(end: End) -> End {
    end
}

fn any(_: &End) -> bool {
    true
}

fn row(name: &'static str, wrap: fn(Work, &Tokens) -> Work, expect: fn(End) -> End) -> Adaptor {
    Adaptor { name, wrap, expect, panics: None, stop: Stop::Reaches, after_ignored_stop: expect }
}

impl Adaptor {
    fn panics(self, after: fn(&End) -> bool, wrap: fn(Work) -> Work) -> Self {
        Self { panics: Some((after, wrap)), ..self }
    }
}

/// Returns the outcome as a number.
fn code(end: &End) -> i32 {
    match end {
        Outcome::Value(value) => *value,
        Outcome::Error(_) => -1,
        Outcome::Stopped => -2,
        Outcome::Panicked(_) => -3,
    }
}

/// Returns the table.
pub(super) fn adaptors() -> Vec<Adaptor> {
    let mut table = Vec::from(transforms());
    table.extend(sequences());
    table.extend(hops());
    table.extend(scopes());
    table.extend(rounds());
    table.extend(groups());
    table.extend(others());
    table
}

fn transforms() -> [Adaptor; 10] {
    [
        row("then", |w, t| w.then(t.with(|v| v + 1)).boxed(), |end| end.map(|v| v + 1))
            .panics(Outcome::is_value, |w| w.then(|_| boom()).boxed()),
        row("map_error", |w, t| w.map_error(t.with(|_| "mapped")).boxed(), |end| end.map_error(|_| "mapped"))
            .panics(Outcome::is_error, |w| w.map_error(|_| boom()).boxed()),
        row(
            "upon_error",
            |w, t| w.upon_error(t.with(|_| 7)).may_fail().boxed(),
            |end| end.or_else(|_| Outcome::Value(7)),
        )
        .panics(Outcome::is_error, |w| w.upon_error(|_| boom()).may_fail().boxed()),
        row(
            "upon_stopped",
            |w, t| w.upon_stopped(t.with_none(|| 8)).boxed(),
            |end| if end.is_stopped() { Outcome::Value(8) } else { end },
        )
        .panics(Outcome::is_stopped, |w| w.upon_stopped(boom).boxed()),
        row(
            "into_result",
            |w, _| w.into_result().then(|result| result.unwrap_or(-1)).may_fail().boxed(),
            |end| end.or_else(|_| Outcome::Value(-1)),
        ),
        row("transpose", |w, _| w.into_result().transpose().boxed(), same),
        row(
            "stopped_as_option",
            |w, _| w.stopped_as_option().then(|option| option.unwrap_or(-2)).boxed(),
            |end| if end.is_stopped() { Outcome::Value(-2) } else { end },
        ),
        row(
            "stopped_as_error",
            |w, _| w.stopped_as_error("stopped").boxed(),
            |end| if end.is_stopped() { Outcome::Error("stopped") } else { end },
        ),
        row(
            "materialize",
            |w, _| w.materialize().then(|end| code(&end)).may_fail().boxed(),
            |end| Outcome::Value(code(&end)),
        ),
        row("dematerialize", |w, _| w.materialize().dematerialize().boxed(), same),
    ]
}

fn sequences() -> Vec<Adaptor> {
    vec![
        row(
            "let_value",
            |w, t| w.let_value(t.with(|v| just(v + 1).may_fail())).boxed(),
            |end| end.map(|v| v + 1),
        )
        .panics(Outcome::is_value, |w| w.let_value(|_| boom::<Work>()).boxed()),
        row(
            "let_error",
            |w, t| w.let_error(t.with(|_| just(7).may_fail())).boxed(),
            |end| end.or_else(|_| Outcome::Value(7)),
        )
        .panics(Outcome::is_error, |w| w.let_error(|_| boom::<Work>()).boxed()),
        row(
            "let_stopped",
            |w, t| w.let_stopped(t.with_none(|| just(8).may_fail())).boxed(),
            |end| if end.is_stopped() { Outcome::Value(8) } else { end },
        )
        .panics(Outcome::is_stopped, |w| w.let_stopped(boom::<Work>).boxed()),
        row("defer", |w, t| defer(t.with_none(move || w)).boxed(), same)
            .panics(any, |_| defer(boom::<Work>).boxed()),
        row("sequence, last", |w, _| sequence((just(()).may_fail(), w)).boxed(), same),
        row(
            "sequence, first",
            |w, _| sequence((w.then(drop), just(9).may_fail())).boxed(),
            |end| end.map(|_| 9),
        ),
        row(
            "fork_join",
            |w, t| {
                let t = t.token();
                w.fork_join((
                    move |v| {
                        hold(&t);
                        just(v).may_fail()
                    },
                    |v| just(v + 1).may_fail(),
                ))
                .then(|(v, w)| v + w)
                .boxed()
            },
            |end| end.map(|v| v + v + 1),
        )
        .panics(Outcome::is_value, |w| {
            w.fork_join((|_| boom::<Work>(), |v| just(v).may_fail())).then(|(v, _)| v).boxed()
        }),
        row("finally", |w, t| w.finally(just_from(t.with_none(|| ()))).boxed(), same)
            .panics(|end| !end.is_panicked(), |w| w.finally(just_from(boom)).boxed()),
        row(
            "within",
            |w, t| {
                let (t, u) = (t.token(), t.token());
                let work = move |_| {
                    hold(&t);
                    w
                };
                within(just(()).may_fail(), work, move |_| just_from(move || hold(&u))).boxed()
            },
            same,
        )
        .panics(any, |_| within(just(()).may_fail(), |_| boom::<Work>(), |_| just(())).boxed()),
        row("within, enter", |w, _| within(w, |v| just(*v).may_fail(), |_| just(())).boxed(), same),
        row(
            "let_with",
            |w, t| {
                let (t, u) = (t.token(), t.token());
                let_with(
                    move || hold(&t),
                    move |_| {
                        hold(&u);
                        w
                    },
                )
                .boxed()
            },
            same,
        )
        .panics(any, |w| let_with(boom::<()>, |_| w).boxed()),
    ]
}

fn hops() -> [Adaptor; 4] {
    [
        row("starts_on", |w, _| w.starts_on(&InlineExecutor).boxed(), same),
        row("continues_on", |w, _| w.continues_on(&InlineExecutor).boxed(), same),
        row("on", |w, _| w.on(&InlineExecutor).boxed(), same),
        row("affine_on", |w, _| w.affine_on(&InlineExecutor).boxed(), same),
    ]
}

fn scopes() -> [Adaptor; 4] {
    [
        row(
            "with_env",
            |w, t| {
                let t = t.token();
                w.with_env(move |_| (hold(&t), Changes::new()).1).boxed()
            },
            same,
        )
        .panics(any, |w| w.with_env(|_| boom()).boxed()),
        row("write_env", |w, _| w.write_env(Changes::new()).boxed(), same),
        Adaptor { stop: Stop::IsShielded, ..row("unstoppable", |w, _| w.unstoppable().boxed(), same) },
        row("let_with_stop_source", |w, t| let_with_stop_source(t.with(move |_| w)).boxed(), same)
            .panics(any, |_| let_with_stop_source(|_| boom::<Work>()).boxed()),
    ]
}

/// Returns a maker of rounds that makes one, of `work`.
fn once(work: Work, token: DropToken) -> impl FnMut() -> Work + Send {
    let mut work = Some(work);
    move || {
        hold(&token);
        work.take().expect("there is one round")
    }
}

fn rounds() -> [Adaptor; 3] {
    [
        row(
            "repeat_n",
            |w, t| {
                let mut make = once(w, t.token());
                repeat_n(1, move |_| make().then(drop)).then(|()| 9).boxed()
            },
            |end| end.map(|_| 9),
        )
        .panics(any, |_| repeat_n(1, |_| boom::<Work>().then(drop)).then(|()| 9).boxed()),
        row(
            "repeat_until",
            |w, t| {
                let mut make = once(w, t.token());
                repeat_until(move || make().then(ControlFlow::Break)).boxed()
            },
            same,
        )
        .panics(any, |_| repeat_until(|| boom::<Work>().then(ControlFlow::Break)).boxed()),
        row(
            "retry_sender",
            |w, t| {
                let mut make = once(w, t.token());
                retry_sender(move |_| make(), |_, _| false).boxed()
            },
            same,
        )
        .panics(Outcome::is_error, |w| {
            let mut work = Some(w);
            retry_sender(move |_| work.take().expect("there is one attempt"), |_, _| boom()).boxed()
        }),
    ]
}

fn groups() -> [Adaptor; 5] {
    [
        row("when_all", |w, _| when_all((w, just(2).may_fail())).then(|(v, _)| v).boxed(), same),
        row("when_all, vec", |w, _| when_all(vec![w]).then(|values| values[0]).boxed(), same),
        row("when_any", |w, _| when_any((w,)).boxed(), same),
        row("when_any, vec", |w, _| when_any(vec![w]).boxed(), same),
        row("stop_when", |w, _| w.stop_when(never::<()>()).boxed(), same),
    ]
}

fn others() -> Vec<Adaptor> {
    vec![
        Adaptor {
            // The calls are not made any more.
            after_ignored_stop: |_| Outcome::Stopped,
            ..row(
                "bulk",
                |w, t| {
                    w.bulk(2, {
                        let t = t.token();
                        move |_, _: &i32| hold(&t)
                    })
                    .boxed()
                },
                same,
            )
        }
        .panics(Outcome::is_value, |w| w.bulk(2, |_, _: &i32| boom()).boxed()),
        row("split", |w, _| w.split().boxed(), same),
        row("boxed", |w, _| AnySender::new(w), same),
        row("either", |w, _| Either::<_, JustError<i32, &'static str>>::Left(w).boxed(), same),
    ]
}
