//! Name lookups whose stop callbacks and wakers panic.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;
use std::task::Wake;

use convoke::Panic;
use convoke_net::raw::{LookupRun, LookupWaiter, Lookups};

struct PanickingWaker;

impl Wake for PanickingWaker {
    fn wake(self: Arc<Self>) {
        panic!("a panic of a waker");
    }
}

fn first_waiter() -> (LookupWaiter, LookupRun) {
    let (waiter, run) = Arc::new(Lookups::default()).join("host");
    (waiter, run.expect("it is the first waiter"))
}

#[test]
fn a_panicking_stop_callback_does_not_reach_the_waiter_that_leaves() {
    let (waiter, run) = first_waiter();
    let callback = Box::pin(run.stop_token().on_stop(|_| panic!("a panic of a callback")));
    callback.as_ref().register();
    // The waiter leaves during unwinding: a second panic would abort the process.
    let left = Panic::catch(move || {
        let _waiter = waiter;
        panic!("one panic");
    });
    assert_eq!(left.unwrap_err().message(), "one panic");
    assert!(run.stop_token().stop_requested());
}

#[test]
fn a_panicking_waker_does_not_reach_a_lookup_that_panics() {
    let (waiter, run) = first_waiter();
    let mut found = pin!(waiter.found());
    let waker = Waker::from(Arc::new(PanickingWaker));
    assert!(found.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let ended = Panic::catch(move || {
        let _run = run;
        panic!("one panic");
    });
    assert_eq!(ended.unwrap_err().message(), "one panic");
    let Poll::Ready(Err(error)) = found.poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("the waiter gets an error");
    };
    assert!(error.to_string().contains("panicked"));
}
