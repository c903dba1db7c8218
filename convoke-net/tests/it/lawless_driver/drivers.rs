//! Drivers that panic, or say what is not so.

use core::net::IpAddr;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Instant;

use convoke::Panic;
use convoke::driver::IoContext;
use convoke::driver::{Address, Driver, ListenOptions, Source, unsupported};
use convoke::net::{TcpListener, resolve};
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::signal::{Signal, SignalHub, signals};
use convoke::sync::oneshot;

/// A driver without sockets of its own, that waits to be woken, and panics where it is told to.
#[derive(Default)]
pub(crate) struct Bare {
    stream: Option<Arc<dyn Source>>,
    panics_in: Option<&'static str>,
    woken: Mutex<bool>,
    wakes: Condvar,
    is_shut: AtomicBool,
}

impl Bare {
    pub(crate) fn with_stream(stream: Arc<dyn Source>) -> Self {
        Self { stream: Some(stream), ..Self::default() }
    }

    fn that_panics_in(place: &'static str) -> Arc<Self> {
        Arc::new(Self { panics_in: Some(place), ..Self::default() })
    }

    fn comes_to(&self, place: &str) {
        assert!(self.panics_in != Some(place), "the driver breaks in `{place}`");
    }
}

impl Driver for Bare {
    fn listen(&self, _: &Address, _: &ListenOptions) -> io::Result<Arc<dyn Source>> {
        self.comes_to("listen");
        Err(unsupported("listeners"))
    }

    fn stream(&self, _: &Address) -> io::Result<Arc<dyn Source>> {
        self.stream.clone().ok_or_else(|| unsupported("streams"))
    }

    fn datagrams(&self, _: &Address, _: &ListenOptions) -> io::Result<Arc<dyn Source>> {
        Err(unsupported("datagrams"))
    }

    fn lookup(&self, _: &str) -> Option<io::Result<Vec<IpAddr>>> {
        self.comes_to("lookup");
        Some(Ok(Vec::new()))
    }

    fn signals(&self) -> Option<Arc<SignalHub>> {
        self.comes_to("signals");
        Some(Arc::default())
    }

    fn wait(&self, until: Option<Instant>) -> io::Result<()> {
        let mut woken = self.woken.lock().unwrap();
        if until.is_none() {
            woken = self.wakes.wait_while(woken, |woken| !*woken).unwrap();
        }
        *woken = false;
        Ok(())
    }

    fn wake(&self) {
        *self.woken.lock().unwrap() = true;
        self.wakes.notify_all();
        self.comes_to("wake");
    }

    fn in_flight(&self) -> usize {
        0
    }

    fn shut_down(&self) {
        self.is_shut.store(true, Ordering::Release);
        self.comes_to("shut_down");
    }
}

#[test]
fn a_driver_that_panics_when_it_shuts_down_does_not_keep_its_context_from_ending() {
    let driver = Bare::that_panics_in("shut_down");
    let context = IoContext::new(driver.clone());
    let chain = launch(&context.executor()).start(async {});
    drop(context);
    assert!(driver.is_shut.load(Ordering::Acquire));
    assert_eq!(chain.wait(), Outcome::Stopped, "what was queued is stopped with the loop");
    // Also when somebody panics already.
    let unwound = Panic::catch(|| {
        let _context = IoContext::new(driver.clone());
        panic!("one panic");
    });
    assert_eq!(unwound.unwrap_err().message(), "one panic");
}

#[test]
fn a_driver_that_panics_when_a_socket_is_made_panics_who_makes_it() {
    let context = IoContext::new(Bare::that_panics_in("listen"));
    let bound = Panic::catch(|| context.run_until(TcpListener::bind("127.0.0.1:0")));
    assert!(bound.unwrap_err().message().contains("`listen`"));
    assert_eq!(context.run_until(async { 7 }), Outcome::Value(7));
}

#[test]
fn a_driver_that_panics_in_a_lookup_panics_who_asks_each_time() {
    let context = IoContext::new(Bare::that_panics_in("lookup"));
    for _ in 0..2 {
        let found = Panic::catch(|| context.run_until(resolve("host:1")));
        assert!(found.unwrap_err().message().contains("`lookup`"));
    }
}

#[test]
fn a_driver_that_panics_when_it_is_asked_for_its_signals_does_so_each_time() {
    let context = IoContext::new(Bare::that_panics_in("signals"));
    for _ in 0..2 {
        let heard = Panic::catch(|| context.run_until(async { signals([Signal::HANGUP]).map(drop) }));
        assert!(heard.unwrap_err().message().contains("`signals`"));
    }
}

#[test]
fn a_driver_that_panics_after_it_was_woken_has_woken_its_context() {
    let context = IoContext::new(Bare::that_panics_in("wake"));
    let (sender, mut receiver) = oneshot::channel();
    let elsewhere = thread::spawn(move || Panic::catch(|| sender.send(7)).is_ok());
    let received = context.run_until(async move { receiver.recv().await.unwrap() });
    assert_eq!(received, Outcome::Value(7));
    // Whether who sends hears of the panic is for who sends: here the waker is called by the channel.
    let _ = elsewhere.join().unwrap();
}

#[test]
fn a_driver_that_says_that_nothing_is_in_flight_has_its_context_return_early_and_no_more() {
    let source = crate::lawless_driver::lawless::Lawless::new(
        crate::lawless_driver::lawless::Lawless::keep,
        |_, _| None,
    );
    let context = IoContext::new(Arc::new(Bare::default()));
    let scope = convoke::sender::CountingScope::new();
    let read = source.read(vec![0_u8; 64]).then(|(result, _)| assert_eq!(result.unwrap(), 64));
    let env = convoke::env::Env::on(convoke::executor::ExecutorRef::new(context.executor()));
    assert!(scope.spawn(read, &env).is_ok());
    context.run();
    drop(context);
    assert!(source.finish_one());
    sync_wait(scope.join()).unwrap();
}
