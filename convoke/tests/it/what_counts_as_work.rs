//! `IoContext::run` runs until there is no work left. Each test is about one kind of work. The driver has no
//! sockets and runs one step of a script whenever the context sleeps, so a test notices if the context
//! returns without sleeping because it saw no work.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Instant;

use convoke::StopReason;
use convoke::driver::IO;
use convoke::driver::IoContext;
use convoke::driver::{Address, Driver, ListenOptions, Source, unsupported};
use convoke::env::Env;
use convoke::executor::ExecutorRef;
use convoke::executor::{Limited, RunLoop, Strand};
use convoke::net::resolve;
use convoke::net::resolver::{LookUp, Names, install};
use convoke::prelude::*;
use convoke::sender::CountingScope;
use convoke::sender::prelude::*;
use convoke::signal::{Signal, SignalHub, SignalService, signals};
use convoke::sync::{Event, oneshot};

type Deed = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Script {
    /// One step for each sleep.
    asleep: Mutex<VecDeque<Deed>>,
    /// Called when the context counts the operations in flight.
    when_asked: Mutex<Option<Deed>>,
    flag: Mutex<bool>,
    changed: Condvar,
    signals: Arc<SignalHub>,
}

impl Script {
    fn on_sleep(&self, step: impl FnOnce() + Send + 'static) {
        self.asleep.lock().unwrap().push_back(Box::new(step));
    }

    fn has_slept(&self) -> bool {
        self.asleep.lock().unwrap().is_empty()
    }
}

impl Driver for Script {
    fn listen(&self, _: &Address, _: &ListenOptions) -> io::Result<Arc<dyn Source>> {
        Err(unsupported("sockets"))
    }

    fn stream(&self, _: &Address) -> io::Result<Arc<dyn Source>> {
        Err(unsupported("sockets"))
    }

    fn datagrams(&self, _: &Address, _: &ListenOptions) -> io::Result<Arc<dyn Source>> {
        Err(unsupported("sockets"))
    }

    fn signals(&self) -> Option<Arc<SignalHub>> {
        Some(self.signals.clone())
    }

    fn wait(&self, until: Option<Instant>) -> io::Result<()> {
        let step = self.asleep.lock().unwrap().pop_front();
        if let Some(step) = step {
            step();
            return Ok(());
        }
        let mut flag = self.flag.lock().unwrap();
        while until.is_none() && !*flag {
            flag = self.changed.wait(flag).unwrap();
        }
        *flag = false;
        Ok(())
    }

    fn wake(&self) {
        *self.flag.lock().unwrap() = true;
        self.changed.notify_all();
    }

    fn in_flight(&self) -> usize {
        let step = self.when_asked.lock().unwrap().take();
        step.into_iter().for_each(|step| step());
        0
    }

    fn shut_down(&self) {}
}

fn context() -> (IoContext, Arc<Script>) {
    let driver = Arc::new(Script::default());
    (IoContext::new(driver.clone()), driver)
}

/// Names that are found once the gate is open.
struct Gated(Arc<Event>);

impl Names for Gated {
    fn look_up<'a>(&'a self, _: &'a str) -> LookUp<'a> {
        Box::pin(async {
            self.0.wait().await;
            Ok(vec![SocketAddr::from(([10, 0, 0, 1], 0))])
        })
    }
}

#[test]
fn a_chain_that_waits_for_a_lookup_is_waited_for() {
    let (context, driver) = context();
    let gate = Arc::new(Event::new());
    install(context.services(), Gated(gate.clone())).unwrap();
    let launched = launch(&context.executor()).start(async { resolve("one:80").await.unwrap().len() });
    driver.on_sleep(move || gate.set());
    context.run();
    assert!(driver.has_slept());
    assert_eq!(launched.wait(), Outcome::Value(1));
}

#[test]
fn a_lookup_is_work_of_its_context_for_any_task() {
    let (context, driver) = context();
    let gate = Arc::new(Event::new());
    install(context.services(), Gated(gate.clone())).unwrap();
    let elsewhere = RunLoop::new();
    let asks = launch(&elsewhere.executor()).local(&IO, context.executor());
    let launched = asks.start(async { resolve("one:80").await.unwrap().len() });
    elsewhere.run_ready();
    driver.on_sleep(move || gate.set());
    context.run();
    assert!(driver.has_slept());
    elsewhere.run_ready();
    assert_eq!(launched.wait(), Outcome::Value(1));
}

#[test]
fn a_stopped_lookup_is_waited_for() {
    let (context, driver) = context();
    let gate = Arc::new(Event::new());
    install(context.services(), Gated(gate)).unwrap();
    let launched = launch(&context.executor()).start(async { drop(resolve("one:80").await) });
    let launched = Arc::new(launched);
    let stops = launched.clone();
    driver.on_sleep(move || stops.request_stop(StopReason::Requested));
    context.run();
    assert_eq!(Arc::into_inner(launched).unwrap().wait(), Outcome::Stopped);
}

#[test]
fn a_chain_that_waits_for_a_signal_is_waited_for() {
    let (context, driver) = context();
    let launched =
        launch(&context.executor()).start(async { signals([Signal::HANGUP]).unwrap().next().await });
    let hub = driver.signals.clone();
    driver.on_sleep(move || hub.hear(Signal::HANGUP));
    context.run();
    assert!(driver.has_slept());
    assert_eq!(launched.wait(), Outcome::Value(Signal::HANGUP));
}

#[test]
fn a_subscription_alone_is_not_work() {
    let (context, _) = context();
    let subscribed = context.services().use_service::<SignalService>().subscribe([Signal::HANGUP]).unwrap();
    assert_eq!(context.run(), 0);
    drop(subscribed);
}

#[test]
fn a_chain_that_waits_for_a_message_from_another_thread_is_waited_for() {
    let (context, driver) = context();
    let (sender, mut receiver) = oneshot::channel();
    let launched = launch(&context.executor()).start(async move { receiver.recv().await });
    driver.on_sleep(move || drop(thread::spawn(move || sender.send(42).unwrap())));
    context.run();
    assert!(driver.has_slept());
    assert_eq!(launched.wait(), Outcome::Value(Some(42)));
}

#[test]
fn a_chain_that_waits_for_blocking_work_is_waited_for() {
    let (context, driver) = context();
    let (sender, receiver) = mpsc::channel();
    let launched = launch(&context.executor()).start(blocking(move |_| receiver.recv().unwrap()));
    driver.on_sleep(move || sender.send(42).unwrap());
    context.run();
    assert!(driver.has_slept());
    assert_eq!(launched.wait(), Outcome::Value(42));
}

#[test]
fn a_chain_on_a_wrapper_is_work_of_the_context_below() {
    let (context, driver) = context();
    let gate = Arc::new(Event::new());
    let (first, second) = (gate.clone(), gate.clone());
    let on_strand = launch(&Strand::new(context.executor())).start(async move { first.wait().await });
    let on_view = launch(&Limited::new(&context.executor(), 1)).start(async move { second.wait().await });
    driver.on_sleep(move || gate.set());
    context.run();
    assert!(driver.has_slept());
    assert_eq!((on_strand.wait(), on_view.wait()), (Outcome::Value(()), Outcome::Value(())));
}

#[test]
fn work_posted_while_the_last_work_ends_is_run() {
    let (context, driver) = context();
    let (work, executor, scope) = (context.work(), context.executor(), CountingScope::new());
    let (env, posted) = (Env::on(ExecutorRef::new(executor.clone())), scope.handle());
    // The context has seen that nothing is queued, and now counts the operations in flight.
    *driver.when_asked.lock().unwrap() = Some(Box::new(move || {
        let elsewhere = thread::spawn(move || {
            assert!(posted.spawn(schedule(&executor), &env).is_ok());
            drop(work);
        });
        elsewhere.join().unwrap();
    }));
    assert_eq!(context.run(), 1);
    context.block_on(async { scope.join().await }).unwrap();
}

#[test]
fn work_that_ends_on_another_thread_wakes_the_context() {
    let (context, driver) = context();
    let work = context.work();
    driver.on_sleep(move || drop(thread::spawn(move || drop(work))));
    assert_eq!(context.run(), 0);
    assert!(driver.has_slept());
}
