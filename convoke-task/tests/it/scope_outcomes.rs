//! The outcome of a scope for each end of its body and each end of a child, with and without a stop from
//! outside: the table in the documentation of `convoke::scope`.
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::rc::Rc;
use std::sync::Arc;

use convoke::executor::RunLoop;
use convoke::prelude::*;
use convoke::sync::Event;
use convoke::task::{forever, stopped};

/// A panic that is not text, and so is passed on as it is.
struct Tag(&'static str);

/// The end of the body.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Body {
    Value,
    Error,
    Panics,
    Stops,
}

/// The end of a child without a handle.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Child {
    /// It has done its part.
    Ends,
    StopsItself,
    /// The program called `Scope::request_stop`.
    StoppedByProgram,
    /// Before the body.
    Fails,
    Panics,
    /// After the body, though it was asked to stop.
    FailsLater,
    PanicsLater,
    /// By the stop from outside: before the body ends, which has heard of it; after the body has ended; and
    /// before the body ends, which has not heard of it.
    CutShort,
    CutShortLater,
    CutShortUnheard,
}

const BODIES: [Body; 4] = [Body::Value, Body::Error, Body::Panics, Body::Stops];
const CHILDREN: [Child; 10] = [
    Child::Ends,
    Child::StopsItself,
    Child::StoppedByProgram,
    Child::Fails,
    Child::Panics,
    Child::FailsLater,
    Child::PanicsLater,
    Child::CutShort,
    Child::CutShortLater,
    Child::CutShortUnheard,
];

impl Child {
    fn is_cut_short(self) -> bool {
        matches!(self, Self::CutShort | Self::CutShortLater | Self::CutShortUnheard)
    }

    /// Returns true if a stop from outside comes before the body ends.
    fn hears_first(self) -> bool {
        !matches!(self, Self::FailsLater | Self::PanicsLater | Self::CutShortLater | Self::CutShortUnheard)
    }
}

/// The table.
fn expected(body: Body, child: Child) -> &'static str {
    match (body, child) {
        (_, Child::Fails) => "error of the child",
        (_, Child::Panics) => "panic of the child",
        (Body::Panics, _) => "panic of the body",
        (Body::Error, Child::CutShort) => "stopped",
        (Body::Error, _) => "error of the body",
        (_, Child::FailsLater) => "error of the child",
        (_, Child::PanicsLater) => "panic of the child",
        (Body::Stops, _) => "stopped",
        (Body::Value, child) if child.is_cut_short() => "stopped",
        (Body::Value, _) => "value",
    }
}

thread_local! {
    /// The loop of the child, for a body that lets it run in the middle of a poll.
    static CHILD_LOOP: RefCell<Option<Rc<RunLoop>>> = const { RefCell::new(None) };
}

fn run_children() -> usize {
    CHILD_LOOP.with_borrow(|run_loop| run_loop.as_ref().map_or(0, |run_loop| run_loop.run_ready()))
}

async fn run_child(child: Child, goes_on: Arc<Event>) -> Result<(), &'static str> {
    match child {
        Child::Ends => Ok(()),
        Child::StopsItself => stopped().await,
        Child::Fails => Err("error of the child"),
        Child::Panics => panic_any(Tag("panic of the child")),
        Child::FailsLater => {
            shield(goes_on.wait()).await;
            Err("error of the child")
        }
        Child::PanicsLater => {
            shield(goes_on.wait()).await;
            panic_any(Tag("panic of the child"))
        }
        Child::StoppedByProgram | Child::CutShort | Child::CutShortLater | Child::CutShortUnheard => {
            forever().await
        }
    }
}

/// Runs a scope with such a body and such a child. They have a loop each, so that the test says which runs when.
fn outcome(body: Body, child: Child, stop: bool) -> &'static str {
    let (bodies, children) = (RunLoop::new(), Rc::new(RunLoop::new()));
    CHILD_LOOP.set(Some(children.clone()));
    let run = || while bodies.run_ready() + run_children() > 0 {};
    let (there, source) = (children.executor(), StopSource::new());
    let (body_goes_on, child_goes_on) = (Arc::new(Event::new()), Arc::new(Event::new()));
    let (goes_on, late, asks) = (body_goes_on.clone(), child_goes_on.clone(), source.clone());
    let launched = launch(&bodies.executor()).stop_token(source.token()).start(async move {
        scope(async |s| {
            s.child().on(&there).spawn(run_child(child, late));
            if child == Child::StoppedByProgram {
                s.request_stop(StopReason::Requested);
            }
            // In a shield: the body goes on after a stop, as one does whose future of another crate is ready.
            shield(goes_on.wait()).await;
            if child == Child::CutShortUnheard && stop {
                asks.request_stop(StopReason::Requested);
                assert!(run_children() > 0, "the child ends in the middle of the poll");
            }
            match body {
                Body::Value => Ok("value"),
                Body::Error => Err("error of the body"),
                Body::Panics => panic_any(Tag("panic of the body")),
                Body::Stops => stopped().await,
            }
        })
        .await
    });
    run();
    if stop && child.hears_first() {
        source.request_stop(StopReason::Requested);
        run();
    }
    body_goes_on.set();
    run();
    if stop {
        source.request_stop(StopReason::Requested);
        run();
    }
    child_goes_on.set();
    run();
    assert!(launched.is_finished(), "{body:?}, {child:?}, {stop}");
    match catch_unwind(AssertUnwindSafe(|| launched.wait())) {
        Ok(Outcome::Value(Ok(text) | Err(text))) => text,
        Ok(_) => "stopped",
        Err(panic) => panic.downcast_ref::<Tag>().unwrap().0,
    }
}

#[test]
fn the_outcome_of_a_scope_is_that_of_the_table() {
    for body in BODIES {
        for child in CHILDREN {
            for stop in [false, true] {
                if stop || !child.is_cut_short() {
                    let (found, expected) = (outcome(body, child, stop), expected(body, child));
                    assert_eq!(
                        found, expected,
                        "body: {body:?}, child: {child:?}, stop from outside: {stop}"
                    );
                }
            }
        }
    }
}

#[test]
fn an_error_of_a_child_is_not_lost_behind_an_error_that_a_stop_has_caused() {
    let (bodies, children) = (RunLoop::new(), RunLoop::new());
    let run = || while bodies.run_ready() + children.run_ready() > 0 {};
    let there = children.executor();
    let (body_goes_on, child_goes_on) = (Arc::new(Event::new()), Arc::new(Event::new()));
    let (goes_on, late) = (body_goes_on.clone(), child_goes_on.clone());
    let launched = launch(&bodies.executor()).start(async move {
        scope(async |s| {
            s.child().on(&there).spawn(async { forever().await });
            s.child().on(&there).spawn(async move {
                shield(late.wait()).await;
                Err("the disk is full")
            });
            shield(goes_on.wait()).await;
            Err::<(), _>("connection closed")
        })
        .await
    });
    run();
    launched.request_stop(StopReason::Requested);
    run();
    body_goes_on.set();
    run();
    child_goes_on.set();
    run();
    assert_eq!(launched.wait(), Outcome::Value(Err("the disk is full")));
}
