//! Services of I/O contexts, runtimes and simulated hosts: tasks find them, and they are closed in order
//! while the driver still exists.
#![cfg(feature = "net")]

use std::io;
use std::sync::{Arc, Weak};

use convoke::StopReason;
use convoke::driver::{IO, use_service, with_services};
use convoke::driver::{IoContext, io_context};
use convoke::executor::PoolExecutor;
use convoke::executor::{Context, FromContext, Service};
use convoke::net::TcpStream;
use convoke::prelude::*;
use convoke::run_on;
use convoke::runtime::Runtime;
use convoke::sender::prelude::*;
use convoke::task::forever;
use convoke_testing::workshop::notes::Notes;

/// The notes of a test, as a service.
#[derive(Clone, Debug, Default)]
struct NoteService(Notes);

impl NoteService {
    fn note(&self, line: impl Into<String>) {
        self.0.note(line);
    }

    fn lines(&self) -> Vec<String> {
        self.0.lines()
    }
}

impl Service for NoteService {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }
}

fn context_with(notes: &NoteService) -> IoContext {
    let context = io_context().unwrap();
    assert!(context.services().make_service(|_| notes.clone()).is_ok());
    context
}

/// A connection that belongs to a service and says goodbye when that closes.
struct Line {
    stream: TcpStream,
    notes: Arc<NoteService>,
}

impl Service for Line {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }

    async fn close(&self) {
        self.stream.write_all(b"goodbye").await.unwrap();
        // Waits for the answer of the peer.
        let mut answer = [0; 3];
        self.stream.read_exact(&mut answer).await.unwrap();
        self.notes.note(format!("the line closes with {:?}", std::str::from_utf8(&answer).unwrap()));
    }
}

/// A service that notes its number.
struct Numbered<const N: usize>(Arc<NoteService>);

impl<const N: usize> Service for Numbered<N> {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }

    async fn close(&self) {
        checkpoint().await;
        self.0.note(format!("{N} closes"));
    }
}

impl<const N: usize> FromContext for Numbered<N> {
    fn from_context(context: &Context) -> Self {
        Numbered(context.find_service::<NoteService>().expect("added by the test"))
    }
}

#[test]
fn a_service_closes_over_its_socket_when_the_context_is_dropped() {
    let notes = NoteService::default();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let peer = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let mut heard = [0; 7];
        stream.read_exact(&mut heard).unwrap();
        stream.write_all(b"bye").unwrap();
        heard
    });
    let context = context_with(&notes);
    let outcome = context.block_on(async {
        let stream = TcpStream::connect(address).await?;
        use_service::<Numbered<1>>()?;
        let made = with_services(|services| {
            let notes = services.find_service::<NoteService>().unwrap();
            services.make_service(|_| Line { stream, notes }).is_ok()
        });
        use_service::<Numbered<2>>()?;
        made
    });
    assert!(outcome.unwrap().unwrap());
    drop(context);
    assert_eq!(&peer.join().unwrap(), b"goodbye");
    assert_eq!(notes.lines(), ["2 closes", "the line closes with \"bye\"", "1 closes"]);
}

#[test]
fn tasks_of_one_context_find_the_same_service_and_those_of_another_have_their_own() {
    let (notes, pool) = (NoteService::default(), ThreadPool::new(1).unwrap());
    let (one, other) = (context_with(&notes), context_with(&notes));
    let here = one.block_on(async { use_service::<Numbered<1>>().unwrap() }).unwrap();
    let again = one.block_on(async { use_service::<Numbered<1>>().unwrap() }).unwrap();
    let there = other.block_on(async { use_service::<Numbered<1>>().unwrap() }).unwrap();
    // A task that runs elsewhere uses the services of the context that its environment names.
    let named = launch(&pool.executor()).local(&IO, one.executor());
    let from_pool = named.start(async { use_service::<Numbered<1>>().unwrap() }).wait().unwrap();
    assert!(Arc::ptr_eq(&here, &again) && Arc::ptr_eq(&here, &from_pool));
    assert!(!Arc::ptr_eq(&here, &there));
    assert!(Arc::ptr_eq(&here, &one.executor().services().use_service::<Numbered<1>>()));
}

#[test]
fn without_a_context_there_are_no_services_and_the_error_says_so() {
    let asked = sync_wait(task(async { use_service::<Numbered<1>>().map(drop) })).unwrap();
    let error = asked.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    assert!(error.to_string().contains("there is no I/O context here"), "{error}");
}

#[test]
fn a_context_that_has_ended_makes_no_services_and_keeps_none() {
    let notes = NoteService::default();
    let context = context_with(&notes);
    let executor = context.executor();
    let service = Arc::downgrade(&executor.services().use_service::<Numbered<1>>());
    drop(context);
    assert_eq!(notes.lines(), ["1 closes"]);
    assert_eq!(Weak::strong_count(&service), 0, "a handle that is left keeps no service");
    assert!(executor.services().try_use_service::<Numbered<2>>().is_err());
}

#[test]
fn services_close_while_the_program_unwinds_from_a_panic() {
    let notes = NoteService::default();
    let panicked = std::panic::catch_unwind(|| {
        let context = context_with(&notes);
        context.block_on(async {
            use_service::<Numbered<1>>().unwrap();
            checkpoint().await;
            panic!("a bug");
        })
    });
    assert!(panicked.is_err());
    assert_eq!(notes.lines(), ["1 closes"]);
}

/// A service with its own work, which it requests to stop and waits for.
struct Flusher {
    work: CountingScope,
}

impl Service for Flusher {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }

    async fn close(&self) {
        self.work.request_stop(StopReason::Shutdown);
        self.work.join().await;
    }
}

impl FromContext for Flusher {
    fn from_context(context: &Context) -> Self {
        let notes = context.find_service::<NoteService>().expect("added by the test");
        let executor = context.executor().expect("a context that runs has one");
        let work = CountingScope::new();
        let flushing = async move {
            let last = notes.clone();
            let flushes = async move {
                notes.note("the flusher begins");
                forever().await
            };
            ensure(async move |exit: Exit| last.note(format!("the flusher {exit}")), flushes).await;
        };
        work.named("flusher").spawn(task(flushing), &Env::on(executor)).unwrap();
        Flusher { work }
    }
}

#[test]
fn work_of_a_service_runs_on_its_context_and_has_ended_when_that_is_gone() {
    let notes = NoteService::default();
    let context = context_with(&notes);
    context
        .block_on(async {
            use_service::<Flusher>()?;
            checkpoint().await;
            checkpoint().await;
            io::Result::Ok(())
        })
        .unwrap()
        .unwrap();
    drop(context);
    assert_eq!(notes.lines(), ["the flusher begins", "the flusher was stopped (shutting down)"]);
}

/// A service that closes with the help of the pool.
struct Heavy {
    pool: PoolExecutor,
    notes: NoteService,
}

impl Service for Heavy {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }

    async fn close(&self) {
        let sum = run_on(&self.pool, async { (1..=10).sum::<u32>() }).await;
        self.notes.note(format!("the pool says {sum}"));
    }
}

#[test]
fn the_services_of_a_runtime_close_while_its_pool_is_there() {
    let notes = NoteService::default();
    let runtime = Runtime::builder().contexts(2).pool_threads(1).build().unwrap();
    for executor in runtime.contexts() {
        let (pool, notes) = (runtime.pool(), notes.clone());
        assert!(executor.services().make_service(|_| Heavy { pool, notes }).is_ok());
    }
    drop(runtime);
    assert_eq!(notes.lines(), ["the pool says 55", "the pool says 55"]);
}

#[cfg(feature = "sim")]
mod simulated {
    use std::sync::Mutex;

    use convoke::sim::{Sim, explore_host_stops};

    use super::*;

    /// A host with a service over a socket, which another host waits for.
    async fn client(notes: NoteService) -> io::Result<()> {
        with_services(|services| services.make_service(|_| notes).is_ok())?;
        let stream = TcpStream::connect("server:7").await?;
        with_services(|services| {
            let notes = services.find_service::<NoteService>().unwrap();
            services.make_service(|_| Line { stream, notes }).is_ok()
        })?;
        use_service::<Flusher>()?;
        checkpoint().await;
        Ok(())
    }

    async fn server() -> io::Result<()> {
        let listener = convoke::net::TcpListener::bind("0.0.0.0:7").await?;
        loop {
            let (stream, _) = listener.accept().await?;
            let mut heard = [0; 7];
            if stream.read_exact(&mut heard).await.is_ok() {
                stream.write_all(b"bye").await?;
            }
        }
    }

    fn hosts(sim: &mut Sim, notes: &NoteService) {
        let notes = notes.clone();
        sim.host("server").daemon().run(server);
        sim.host("client").run(move || client(notes.clone()));
    }

    #[test]
    fn the_services_of_a_simulated_host_close_when_its_program_has_ended() {
        let notes = NoteService::default();
        let mut sim = Sim::new(3);
        hosts(&mut sim, &notes);
        sim.run();
        let lines = notes.lines();
        assert_eq!(lines.last().unwrap(), "the line closes with \"bye\"", "{lines:?}");
    }

    #[test]
    fn wherever_the_program_is_stopped_its_services_close() {
        let all = Mutex::new(Vec::new());
        let exploration = explore_host_stops(3, "client", |sim| {
            let notes = NoteService::default();
            hosts(sim, &notes);
            all.lock().unwrap().push(notes);
        });
        assert!(exploration.runs().len() > 5);
        for notes in all.into_inner().unwrap() {
            let lines = notes.lines();
            let count = |what: &str| lines.iter().filter(|line| line.starts_with(what)).count();
            assert_eq!(count("the flusher begins"), count("the flusher was stopped"), "{lines:?}");
            assert!(count("the line closes") == 1 || count("the flusher") == 0, "{lines:?}");
        }
    }
}
