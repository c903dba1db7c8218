//! Sources of names that do what they should not: they answer nothing, never, too late or twice as much as was asked, panic
//! wherever they are called, and ask the resolver that asks them. Whoever asks gets an error or waits until it is stopped, and
//! the resolver goes on.
#![cfg(feature = "net")]

use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use convoke::driver::{IoContext, io_context};
use convoke::net::resolve;
use convoke::net::resolver::{LookUp, Names, install};
use convoke::prelude::*;
use convoke::task::forever;

/// Does what the name of the host says.
#[derive(Clone, Default)]
struct Lawless {
    /// The number of lookups that have ended.
    ended: Arc<AtomicUsize>,
}

/// Panics when it is dropped.
struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("a lookup is dropped");
    }
}

impl Names for Lawless {
    fn look_up<'a>(&'a self, host: &'a str) -> LookUp<'a> {
        assert!(host != "panics", "a lookup is made");
        let here = vec![SocketAddr::from(([10, 0, 0, 1], 9))];
        let answer = async move {
            match host {
                "nothing" => Ok(Vec::new()),
                "panics in a poll" => panic!("a lookup is polled"),
                "panics when dropped" => {
                    let _panics = PanicsWhenDropped;
                    Ok(here)
                }
                "never" => forever().await,
                "asks itself" => resolve((host, 1)).await,
                "ignores its stop" => {
                    while catch_stopped(checkpoint()).await.is_ok() {}
                    Ok(here)
                }
                "many" => Ok(here.repeat(10_000)),
                _ => Ok(here),
            }
        };
        let ended = self.ended.clone();
        Box::pin(async move {
            let answer: io::Result<_> = answer.await;
            ended.fetch_add(1, Ordering::Relaxed);
            answer
        })
    }
}

fn lawless() -> (IoContext, Lawless) {
    let (context, names) = (io_context().unwrap(), Lawless::default());
    install(context.services(), names.clone()).unwrap();
    (context, names)
}

fn ask(context: &IoContext, host: &str) -> io::Result<Vec<SocketAddr>> {
    context.block_on(resolve((host, 80))).unwrap()
}

/// Asks for a name that does not answer, and gives up.
fn ask_in_vain(context: &IoContext, host: &str) {
    let asked = context.block_on(timeout(Duration::from_millis(20), resolve((host, 80)))).unwrap();
    assert!(asked.is_err(), "`{host}` has answered");
}

fn still_works(context: &IoContext) {
    let found = context.block_on(resolve("other:80")).unwrap().unwrap();
    assert_eq!(found, [SocketAddr::from(([10, 0, 0, 1], 80))], "with the port that was asked for");
}

#[test]
fn no_addresses_are_an_error() {
    let (context, _) = lawless();
    let error = ask(&context, "nothing").unwrap_err();
    assert!(error.to_string().starts_with("cannot look up `nothing`: "), "{error}");
    still_works(&context);
}

#[test]
fn a_panic_is_an_error_wherever_it_is() {
    for host in ["panics", "panics in a poll", "panics when dropped"] {
        let (context, _) = lawless();
        let error = ask(&context, host).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot look up `{host}`: the lookup panicked"));
        still_works(&context);
        assert!(catch_unwind(AssertUnwindSafe(|| drop(context))).is_ok(), "it is told to the clean-up hook");
    }
}

#[test]
fn a_lookup_that_does_not_answer_holds_up_neither_others_nor_the_end() {
    for host in ["never", "asks itself"] {
        let (context, names) = lawless();
        ask_in_vain(&context, host);
        still_works(&context);
        ask_in_vain(&context, host);
        drop(context);
        assert_eq!(names.ended.load(Ordering::Relaxed), 1, "the other one alone has answered");
    }
}

#[test]
fn an_answer_that_comes_after_the_stop_is_dropped() {
    let (context, names) = lawless();
    ask_in_vain(&context, "ignores its stop");
    still_works(&context);
    drop(context);
    assert_eq!(names.ended.load(Ordering::Relaxed), 2, "the context has waited for it");
}

#[test]
fn many_addresses_are_all_passed_on() {
    let (context, _) = lawless();
    assert_eq!(ask(&context, "many").unwrap().len(), 10_000);
}
