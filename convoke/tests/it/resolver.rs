//! Name lookups: shared by all tasks that want the same name, limited in number, stopped when no task waits,
//! and replaceable in tests.
#![cfg(feature = "net")]

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use convoke::driver::{IoContext, io_context};
use convoke::executor::{Service, ServiceError};
use convoke::net::resolve;
use convoke::net::resolver::{BlockingNames, HostTable, LookUp, LookupError, Names, Resolver, install};
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::sync::Event;

/// The system's error code for a process without a free descriptor.
const TOO_MANY_DESCRIPTORS: i32 = 24;

/// A name source that waits until a gate is opened, and records its lookups and how they ended.
#[derive(Clone, Default)]
struct Gated(Arc<Gate>);

#[derive(Default)]
struct Gate {
    asked: Mutex<Vec<String>>,
    ended: Mutex<Vec<Exit>>,
    open: Event,
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Gate {
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn ended(&self) -> Vec<Exit> {
        self.ended.lock().unwrap().clone()
    }

    /// Waits until `count` names were looked up.
    async fn until_asked(&self, count: usize) {
        while self.asked.lock().unwrap().len() < count {
            checkpoint().await;
        }
    }

    async fn until_ended(&self, count: usize) {
        while self.ended.lock().unwrap().len() < count {
            checkpoint().await;
        }
    }
}

impl Names for Gated {
    fn look_up<'a>(&'a self, host: &'a str) -> LookUp<'a> {
        let gate = &*self.0;
        Box::pin(async move {
            gate.asked.lock().unwrap().push(host.to_owned());
            let now = gate.now.fetch_add(1, Ordering::Relaxed) + 1;
            gate.most.fetch_max(now, Ordering::Relaxed);
            let answer = async {
                gate.open.wait().await;
                match host.strip_prefix("no ") {
                    Some("descriptors") => Err(io::Error::from_raw_os_error(TOO_MANY_DESCRIPTORS)),
                    Some(_) => Err(io::Error::new(io::ErrorKind::NotFound, format!("there is {host}"))),
                    None => Ok(vec![SocketAddr::from(([10, 0, 0, 1], 0))]),
                }
            };
            let leave = async |exit: Exit| {
                gate.now.fetch_sub(1, Ordering::Relaxed);
                gate.ended.lock().unwrap().push(exit);
            };
            ensure(leave, answer).await
        })
    }
}

fn with_gate() -> (IoContext, Arc<Gate>) {
    let (context, names) = (io_context().unwrap(), Gated::default());
    install(context.services(), names.clone()).unwrap();
    (context, names.0)
}

fn found(port: u16) -> Vec<SocketAddr> {
    vec![SocketAddr::from(([10, 0, 0, 1], port))]
}

#[test]
fn all_who_want_the_same_name_at_the_same_time_share_one_lookup() {
    let (context, gate) = with_gate();
    let ports = [1, 2, 3, 4, 5];
    let answers = context.block_on(async {
        let asks = ports.map(|port| resolve(("one", port)));
        let open = async {
            gate.until_asked(2).await;
            gate.open.set();
        };
        let (answers, other, ()) = join((join(Vec::from(asks)), resolve(("other", 6)), open)).await;
        assert_eq!(other.unwrap(), found(6));
        answers
    });
    let answers: Vec<_> = answers.unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!(answers, ports.map(found), "one answer, and each with its own port");
    let mut asked = gate.asked();
    asked.sort();
    assert_eq!(asked, ["one", "other"], "each name once");
    context.block_on(resolve("one:7")).unwrap().unwrap();
    assert_eq!(gate.asked().len(), 3, "and nothing is remembered");
}

#[test]
fn all_who_want_a_name_that_is_not_there_are_told_so() {
    let (context, gate) = with_gate();
    let (one, other, ()) = context
        .block_on(async {
            let open = async { gate.open.set() };
            join((resolve(("no one", 1)), resolve(("no one", 2)), open)).await
        })
        .unwrap();
    for error in [one.unwrap_err(), other.unwrap_err()] {
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(error.to_string(), "cannot look up `no one`: there is no one");
    }
    assert_eq!(gate.asked().len(), 1);
}

#[test]
fn all_are_told_what_the_system_said_and_of_which_host() {
    let (context, gate) = with_gate();
    let (one, other, ()) = context
        .block_on(async {
            let open = async { gate.open.set() };
            join((resolve(("no descriptors", 1)), resolve(("no descriptors", 2)), open)).await
        })
        .unwrap();
    assert_eq!(gate.asked().len(), 1);
    let said = io::Error::from_raw_os_error(TOO_MANY_DESCRIPTORS);
    for error in [one.unwrap_err(), other.unwrap_err()] {
        assert_eq!(error.kind(), said.kind());
        assert_eq!(error.to_string(), format!("cannot look up `no descriptors`: {said}"));
        let inside: &LookupError = error.get_ref().unwrap().downcast_ref().unwrap();
        assert_eq!(inside.host(), "no descriptors");
        assert_eq!(inside.cause().raw_os_error(), Some(TOO_MANY_DESCRIPTORS));
    }
}

#[test]
fn a_host_that_the_system_refuses_is_named_with_a_context_and_without() {
    // A name that it refuses without a lookup.
    let impossible = ("no\0where", 1);
    let in_a_context = io_context().unwrap().block_on(resolve(impossible)).unwrap();
    let alone = sync_wait(task(async move { resolve(impossible).await })).unwrap();
    for error in [in_a_context.unwrap_err(), alone.unwrap_err()] {
        assert!(error.to_string().starts_with("cannot look up `no\0where`: "), "{error}");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}

#[test]
fn the_number_of_lookups_at_a_time_is_bounded() {
    let (context, gate) = with_gate();
    assert!(context.services().make_service(|services| Resolver::new(services).at_once(2)).is_ok());
    let answers = context.block_on(async {
        let hosts = ["a", "b", "c", "d", "e"];
        let open = async {
            gate.until_asked(2).await;
            // Long enough for the others to start, if they could.
            for _ in 0..20 {
                checkpoint().await;
            }
            assert_eq!(gate.asked().len(), 2);
            gate.open.set();
        };
        let (answers, ()) = join((join(Vec::from(hosts.map(|host| resolve((host, 1))))), open)).await;
        answers.len()
    });
    assert_eq!(answers.unwrap(), 5);
    assert_eq!((gate.asked().len(), gate.most.load(Ordering::Relaxed)), (5, 2));
}

#[test]
fn who_is_stopped_leaves_the_lookup_to_the_others() {
    let (context, gate) = with_gate();
    let answer = context.block_on(async {
        let first_leaves = async {
            // The loser is the one that started the lookup.
            race((async { drop(resolve("one:1").await) }, gate.until_asked(1))).await;
            gate.open.set();
        };
        join((first_leaves, resolve("one:2"))).await.1
    });
    assert_eq!(answer.unwrap().unwrap(), found(2));
    assert_eq!(gate.ended(), [Exit::Value], "nobody has stopped it");
}

#[test]
fn a_lookup_that_nobody_waits_for_is_asked_to_stop() {
    let (context, gate) = with_gate();
    let asked = context.block_on(async {
        race((async { drop(resolve("one:1").await) }, gate.until_asked(1))).await;
        gate.until_ended(1).await;
        // The next one does not wait for the dropped lookup.
        gate.open.set();
        resolve("one:2").await.unwrap();
        gate.asked().len()
    });
    assert_eq!(asked.unwrap(), 2);
    let [first, second] = gate.ended().try_into().unwrap();
    assert!(first.is_stopped() && second.is_clean());
}

#[test]
fn a_context_that_ends_stops_its_lookups_and_waits_for_them() {
    let (context, gate) = with_gate();
    let asking = launch(&context.executor()).start(async { resolve("one:1").await.unwrap_err().to_string() });
    context.block_on(gate.until_asked(1)).unwrap();
    drop(context);
    let [ended] = gate.ended().try_into().unwrap();
    assert!(ended.is_stopped());
    assert_eq!(asking.wait().unwrap(), "cannot look up `one`: the I/O context has shut down");
}

/// A name source that blocks its thread until it is requested to stop.
struct Blocks(Arc<AtomicUsize>);

impl Names for Blocks {
    fn look_up<'a>(&'a self, _: &'a str) -> LookUp<'a> {
        let asked = self.0.clone();
        Box::pin(blocking(move |inside| {
            asked.fetch_add(1, Ordering::Release);
            while !inside.stop_requested() {
                std::thread::yield_now();
            }
            asked.fetch_add(1, Ordering::Release);
            Err(io::ErrorKind::Interrupted.into())
        }))
    }
}

#[test]
fn a_lookup_that_blocks_a_thread_has_ended_when_its_context_has() {
    let (context, asked) = (io_context().unwrap(), Arc::new(AtomicUsize::new(0)));
    install(context.services(), Blocks(asked.clone())).unwrap();
    context
        .block_on(async {
            let begun = async {
                while asked.load(Ordering::Acquire) == 0 {
                    checkpoint().await;
                }
            };
            race((async { drop(resolve("slow:1").await) }, begun)).await;
        })
        .unwrap();
    drop(context);
    assert_eq!(asked.load(Ordering::Acquire), 2);
}

/// The thread of this lookup is never free. A context that waited for it would never end.
#[test]
fn a_lookup_that_never_ends_delays_neither_a_stop_nor_the_end_of_its_context() {
    let context = io_context().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let never = BlockingNames::new(move |host: &str| {
        tell.send(host.to_owned()).unwrap();
        loop {
            std::thread::park();
        }
    });
    install(context.services(), never).unwrap();
    let begun = std::time::Instant::now();
    context
        .block_on(async {
            let is_asked = blocking(move |_| assert_eq!(told.recv().unwrap(), "silent"));
            race((async { drop(resolve("silent:1").await) }, is_asked)).await;
        })
        .unwrap();
    drop(context);
    // The grace period of blocking work is a matter of seconds.
    assert!(begun.elapsed() < convoke::executor::DEFAULT_BLOCKING_GRACE);
}

struct Unasked;

impl Names for Unasked {
    fn look_up<'a>(&'a self, host: &'a str) -> LookUp<'a> {
        panic!("nobody asks for `{host}`");
    }
}

#[test]
fn numbers_are_not_looked_up() {
    let context = io_context().unwrap();
    install(context.services(), Unasked).unwrap();
    for numeric in ["127.0.0.1:80", "[::1]:80"] {
        assert_eq!(context.block_on(resolve(numeric)).unwrap().unwrap(), [numeric.parse().unwrap()]);
    }
    assert!(!context.services().has_service::<Resolver>());
}

#[test]
fn names_that_panic_are_an_error_to_who_asks_and_are_told_to_the_hook() {
    let told = Arc::new(Mutex::new(String::new()));
    let hook = told.clone();
    convoke::cleanup::set_cleanup_hook(move |problem| *hook.lock().unwrap() += &problem.to_string());
    let context = io_context().unwrap();
    install(context.services(), Unasked).unwrap();
    let error = context.block_on(resolve("one:1")).unwrap().unwrap_err();
    assert_eq!(error.to_string(), "cannot look up `one`: the lookup panicked");
    drop(context);
    let told = told.lock().unwrap();
    assert!(told.contains("Resolver") && told.contains("nobody asks for `one`"), "{told}");
}

#[test]
fn names_are_installed_before_the_first_lookup_or_not_at_all() {
    let context = io_context().unwrap();
    context.block_on(resolve("localhost:1")).unwrap().unwrap();
    assert!(matches!(install(context.services(), HostTable::new()), Err(ServiceError::Duplicate(_))));
}

#[test]
fn a_table_knows_its_hosts_and_the_system_the_rest_if_it_is_asked() {
    let context = io_context().unwrap();
    let table = HostTable::new().with("one", [10, 0, 0, 1]);
    install(context.services(), table.clone().or_system()).unwrap();
    assert_eq!(context.block_on(resolve("one:1")).unwrap().unwrap(), found(1));
    let loopback = context.block_on(resolve("localhost:1")).unwrap().unwrap();
    assert!(loopback.iter().all(|address| address.ip().is_loopback()));
    let alone = io_context().unwrap();
    install(alone.services(), table).unwrap();
    let error = alone.block_on(resolve("localhost:1")).unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn without_a_context_the_system_is_asked() {
    let found = sync_wait(task(async { resolve("localhost:1").await })).unwrap().unwrap();
    assert!(found.iter().all(|address| address.ip().is_loopback()));
}

/// A service that looks up a name when it closes, after the resolver, which was created later.
struct LooksUpLate(Arc<Mutex<Vec<SocketAddr>>>);

impl Service for LooksUpLate {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }

    async fn close(&self) {
        *self.0.lock().unwrap() = resolve("one:1").await.unwrap();
    }
}

#[test]
fn a_service_that_closes_after_the_resolver_can_still_look_up_names() {
    let (context, late) = (io_context().unwrap(), Arc::new(Mutex::new(Vec::new())));
    install(context.services(), HostTable::new().with("one", [10, 0, 0, 1])).unwrap();
    assert!(context.services().make_service(|_| LooksUpLate(late.clone())).is_ok());
    context.block_on(resolve("one:1")).unwrap().unwrap();
    drop(context);
    assert_eq!(*late.lock().unwrap(), found(1));
}

#[cfg(feature = "sim")]
mod simulated {
    use std::time::Duration;

    use convoke::driver::with_services;
    use convoke::net::{TcpListener, TcpStream};
    use convoke::sim::{Sim, explore_host_stops};

    use super::*;

    /// A slow name server.
    struct Slow(HostTable);

    impl Names for Slow {
        fn look_up<'a>(&'a self, host: &'a str) -> LookUp<'a> {
            Box::pin(async move {
                sleep(Duration::from_secs(3)).await;
                self.0.look_up(host).await
            })
        }
    }

    async fn server() -> io::Result<()> {
        let listener = TcpListener::bind("0.0.0.0:7").await?;
        loop {
            listener.accept().await?;
        }
    }

    fn hosts(sim: &mut Sim) {
        sim.host("server").daemon().run(server);
        let address = sim.address("server");
        sim.host("client").run(move || async move {
            let unknown = resolve("alias:7").await.unwrap_err();
            assert_eq!(unknown.kind(), io::ErrorKind::NotFound);
            let table = HostTable::new().with("alias", address).with("server", [10, 9, 9, 9]);
            let installed =
                with_services(|services: &convoke::executor::Context| install(services, Slow(table)))?;
            installed.map_err(io::Error::other)?;
            // A host of the simulation is found by its own name, regardless of the table.
            assert_eq!(resolve("server:7").await?, [SocketAddr::from((address, 7))]);
            try_join((TcpStream::connect("alias:7"), TcpStream::connect("alias:7"))).await.map(drop)
        });
    }

    #[test]
    fn hosts_are_found_first_and_a_table_may_know_more() {
        let mut sim = Sim::new(1);
        hosts(&mut sim);
        let report = sim.run();
        assert!(report.elapsed() >= Duration::from_secs(3), "the name server was asked");
        assert!(report.elapsed() < Duration::from_secs(6), "and once, for both");
    }

    #[test]
    fn wherever_the_program_is_stopped_no_lookup_is_left() {
        assert!(explore_host_stops(1, "client", hosts).runs().len() > 5);
    }
}
