//! Drivers that panic, or lie.

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

/// A driver without sockets of its own. It waits until it is woken, and panics in one chosen method.
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

    fn that_panics_in(method: &'static str) -> Arc<Self> {
        Arc::new(Self { panics_in: Some(method), ..Self::default() })
    }

    fn panic_if_chosen(&self, method: &str) {
        assert!(self.panics_in != Some(method), "the driver panics in `{method}`");
    }
}

impl Driver for Bare {
    fn listen(&self, _: &Address, _: &ListenOptions) -> io::Result<Arc<dyn Source>> {
        self.panic_if_chosen("listen");
        Err(unsupported("listeners"))
    }

    fn stream(&self, _: &Address) -> io::Result<Arc<dyn Source>> {
        self.stream.clone().ok_or_else(|| unsupported("streams"))
    }

    fn datagrams(&self, _: &Address, _: &ListenOptions) -> io::Result<Arc<dyn Source>> {
        Err(unsupported("datagrams"))
    }

    fn lookup(&self, _: &str) -> Option<io::Result<Vec<IpAddr>>> {
        self.panic_if_chosen("lookup");
        Some(Ok(Vec::new()))
    }

    fn signals(&self) -> Option<Arc<SignalHub>> {
        self.panic_if_chosen("signals");
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
        self.panic_if_chosen("wake");
    }

    fn in_flight(&self) -> usize {
        0
    }

    fn shut_down(&self) {
        self.is_shut.store(true, Ordering::Release);
        self.panic_if_chosen("shut_down");
    }
}

#[test]
fn a_context_ends_although_its_driver_panics_in_shut_down() {
    let driver = Bare::that_panics_in("shut_down");
    let context = IoContext::new(driver.clone());
    let chain = launch(&context.executor()).start(async {});
    drop(context);
    assert!(driver.is_shut.load(Ordering::Acquire));
    assert_eq!(chain.wait(), Outcome::Stopped, "queued work is stopped with the loop");
    // The context is dropped during unwinding, too.
    let unwound = Panic::catch(|| {
        let _context = IoContext::new(driver.clone());
        panic!("one panic");
    });
    assert_eq!(unwound.unwrap_err().message(), "one panic");
}

#[test]
fn a_driver_that_panics_in_listen_panics_the_task() {
    let context = IoContext::new(Bare::that_panics_in("listen"));
    let bound = Panic::catch(|| context.block_on(TcpListener::bind("127.0.0.1:0")));
    assert!(bound.unwrap_err().message().contains("`listen`"));
    assert_eq!(context.block_on(async { 7 }), Outcome::Value(7));
}

#[test]
fn a_driver_that_panics_in_lookup_panics_each_task() {
    let context = IoContext::new(Bare::that_panics_in("lookup"));
    for _ in 0..2 {
        let found = Panic::catch(|| context.block_on(resolve("host:1")));
        assert!(found.unwrap_err().message().contains("`lookup`"));
    }
}

#[test]
fn a_driver_that_panics_in_signals_panics_each_task() {
    let context = IoContext::new(Bare::that_panics_in("signals"));
    for _ in 0..2 {
        let heard = Panic::catch(|| context.block_on(async { signals([Signal::HANGUP]).map(drop) }));
        assert!(heard.unwrap_err().message().contains("`signals`"));
    }
}

#[test]
fn a_driver_that_panics_after_a_wake_has_woken_its_context() {
    let context = IoContext::new(Bare::that_panics_in("wake"));
    let (sender, mut receiver) = oneshot::channel();
    let elsewhere = thread::spawn(move || Panic::catch(|| sender.send(7)).is_ok());
    let received = context.block_on(async move { receiver.recv().await.unwrap() });
    assert_eq!(received, Outcome::Value(7));
    // The sender may see the panic or not: the channel calls the waker.
    let _ = elsewhere.join().unwrap();
}

#[test]
fn a_driver_that_reports_nothing_in_flight_only_ends_run_early() {
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
