//! Closing services: each close is awaited, the last made first, whatever the others do.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;

use convoke_core::env::Changes;
use convoke_core::{ExecutorRef, Outcome, StopReason, StopSource};
use convoke_sender::{sync_wait, sync_wait_with};
use convoke_sync::Event;
use convoke_task::context::{Context, Service, ServiceError};
use convoke_task::{checkpoint, join, task};

use super::{DESTROY, Latin, Notes, Numbered, SHUT_DOWN};

/// Closes in two steps, and notes both. Uses the service that was added before it.
struct Closes<const N: usize> {
    notes: Notes,
    before: Option<Arc<Numbered<1>>>,
}

impl<const N: usize> Service for Closes<N> {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }

    async fn close(&self) {
        self.notes.note(format!("close {N}"));
        checkpoint().await;
        if let Some(before) = &self.before {
            before.0.note(format!("{N} uses 1"));
        }
        self.notes.note(format!("closed {N}"));
    }

    fn shutdown(&self) {
        self.notes.note(format!("shut down {N}"));
    }
}

impl<const N: usize> Drop for Closes<N> {
    fn drop(&mut self) {
        self.notes.note(format!("destroy {N}"));
    }
}

/// `Numbered<1>`, then `Closes<2>`, which uses it, then `Closes<3>`.
fn with_two_that_close(notes: &Notes) -> Context {
    let context = Context::new();
    let one = context.make_service(|_| Numbered::<1>(notes.clone())).ok();
    assert!(context.make_service(|_| Closes::<2> { notes: notes.clone(), before: one }).is_ok());
    assert!(context.make_service(|_| Closes::<3> { notes: notes.clone(), before: None }).is_ok());
    context
}

const CLOSED: [&str; 11] = [
    "close 3",
    "closed 3",
    "shut down 3",
    "close 2",
    "2 uses 1",
    "closed 2",
    "shut down 2",
    "shut down 1",
    "destroy 3",
    "destroy 2",
    "destroy 1",
];

#[test]
fn closing_awaits_each_service_before_those_that_it_was_made_with() {
    let notes = Notes::default();
    let context = with_two_that_close(&notes);
    let outcome = sync_wait(task(async move {
        context.close().await;
        assert!(!context.has_service::<Numbered<1>>(), "all are dropped");
        let late = context.make_service(|_| Latin).err();
        assert!(matches!(late, Some(ServiceError::ShutDown(_))));
    }));
    assert_eq!(outcome, Outcome::Value(()));
    assert_eq!(notes.lines(), CLOSED);
}

#[test]
fn a_stop_does_not_prevent_services_from_closing() {
    let (notes, source) = (Notes::default(), StopSource::new());
    let context = with_two_that_close(&notes);
    source.request_stop(StopReason::Requested);
    let closing = task(async move {
        context.close().await;
        checkpoint().await;
    });
    let outcome = sync_wait_with(Changes::new().stop_token(source.token()), closing);
    assert_eq!(outcome, Outcome::Stopped, "by the checkpoint, after all was closed");
    assert_eq!(notes.lines(), CLOSED);
}

#[test]
fn dropping_a_context_shuts_down_and_awaits_nothing() {
    let notes = Notes::default();
    drop(with_two_that_close(&notes));
    assert_eq!(notes.lines(), [SHUT_DOWN, DESTROY].concat());
}

/// Closes when the gate is open.
struct Gated {
    notes: Notes,
    begun: Event,
    gate: Event,
}

impl Service for Gated {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }

    async fn close(&self) {
        self.notes.note("close 4");
        self.begun.set();
        self.gate.wait().await;
        self.notes.note("closed 4");
    }

    fn shutdown(&self) {
        self.notes.note("shut down 4");
    }
}

fn with_a_gated_one(notes: &Notes) -> (Context, Arc<Gated>) {
    let context = with_two_that_close(notes);
    let gated =
        context.make_service(|_| Gated { notes: notes.clone(), begun: Event::new(), gate: Event::new() });
    let gated = gated.ok().unwrap();
    (context, gated)
}

#[test]
fn a_shutdown_during_a_close_is_in_order_and_reaches_every_service() {
    let notes = Notes::default();
    let (context, gated) = with_a_gated_one(&notes);
    let shuts_down = async {
        gated.begun.wait().await;
        context.shutdown();
        gated.gate.set();
    };
    assert_eq!(
        sync_wait(task(async { join((context.close(), shuts_down)).await })),
        Outcome::Value(((), ()))
    );
    let ended = ["close 4", "shut down 4", "shut down 3", "shut down 2", "shut down 1", "closed 4"];
    assert_eq!(notes.lines()[..6], ended);
    assert_eq!(notes.lines()[6..], ["destroy 3", "destroy 2", "destroy 1"]);
}

#[test]
fn a_service_whose_close_was_cut_short_is_shut_down_with_the_rest() {
    for closes_again in [true, false] {
        let notes = Notes::default();
        let (context, gated) = with_a_gated_one(&notes);
        let ends = async {
            let mut closing = Box::pin(context.close());
            let begun = poll_fn(|cx| {
                assert!(closing.as_mut().poll(cx).is_pending());
                pin!(gated.begun.wait()).poll(cx)
            });
            begun.await;
            drop(closing);
            gated.gate.set();
            if closes_again {
                context.close().await;
            }
        };
        assert_eq!(sync_wait(task(ends)), Outcome::Value(()));
        drop(context);
        for service in 1..=4 {
            let shut_down = format!("shut down {service}");
            assert_eq!(notes.lines().iter().filter(|line| **line == shut_down).count(), 1, "{shut_down}");
        }
    }
}

/// In virtual time, where a grace period is over only when no task can run.
#[cfg(feature = "testing")]
mod troubled {
    use convoke_task::{forever, set_cleanup_hook};
    use convoke_testing::run;

    use super::*;

    struct PanicsWhenClosed;
    struct NeverCloses;

    impl Service for PanicsWhenClosed {
        type Interface = Self;

        fn into_interface(self: Arc<Self>) -> Arc<Self> {
            self
        }

        async fn close(&self) {
            checkpoint().await;
            panic!("it does not want to close");
        }
    }

    impl Service for NeverCloses {
        type Interface = Self;

        fn into_interface(self: Arc<Self>) -> Arc<Self> {
            self
        }

        async fn close(&self) {
            forever().await;
        }
    }

    #[test]
    fn a_service_that_panics_or_does_not_end_is_reported_and_the_others_are_closed() {
        let (notes, told) = (Notes::default(), Notes::default());
        let hook = told.clone();
        set_cleanup_hook(move |problem| hook.note(problem.to_string()));
        let context = with_two_that_close(&notes);
        assert!(context.make_service(|_| PanicsWhenClosed).is_ok());
        assert!(context.make_service(|_| NeverCloses).is_ok());
        run(async move { context.close().await });
        assert_eq!(notes.lines(), CLOSED);
        let told = told.lines();
        let says = |what: &str, how: &str| told.iter().any(|line| line.contains(what) && line.contains(how));
        assert!(says(concat!("PanicsWhenClosed (at ", file!()), "it does not want to close"), "{told:?}");
        assert!(says(concat!("NeverCloses (at ", file!()), "grace period over"), "{told:?}");
    }
}

#[test]
fn the_executor_of_a_context_is_dropped_with_its_services() {
    let context = Context::new();
    assert!(context.executor().is_none());
    context.set_executor(ExecutorRef::default());
    assert!(context.executor().is_some());
    context.end();
    assert!(context.executor().is_none());
}
