//! tokio inside Convoke: guests, and the runtime that closes in order.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use convoke::cleanup::set_cleanup_hook;
use convoke::driver::{use_service, with_services};
use convoke::executor::{Context, FromContext, Service};
use convoke::prelude::*;
use convoke::runtime::Runtime;
use convoke_tokio::{GuestRuntime, run, tokio_guest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::log::{Log, OnDrop};

fn runtime() -> Runtime {
    Runtime::builder().contexts(1).pool_threads(1).build().unwrap()
}

/// Everything that needs the context of a tokio runtime.
async fn tokio_alone() -> std::io::Result<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let echo = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await?;
        let mut byte = [0];
        stream.read_exact(&mut byte).await?;
        stream.write_all(&byte).await
    });
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(&[7]).await?;
    let mut byte = [0];
    stream.read_exact(&mut byte).await?;
    echo.await.unwrap()?;
    tokio::time::sleep(Duration::from_millis(1)).await;
    Ok(byte[0] + tokio::task::spawn_blocking(|| 35).await.unwrap())
}

#[test]
fn sockets_timers_and_spawned_tasks_of_tokio_work_in_a_task() {
    let outcome = runtime().block_on(async {
        assert_eq!(tokio_guest(tokio_alone).await?, 42);
        scope(async |s| {
            for _ in 0..3 {
                s.spawn(async { tokio_guest(tokio_alone).await.map(|sum| assert_eq!(sum, 42)) });
            }
            std::io::Result::Ok(())
        })
        .await
    });
    outcome.unwrap().unwrap();
}

/// tokio's timers panic outside: so the closure and the destructor ran inside.
#[test]
fn a_guest_is_made_and_dropped_inside_the_runtime() {
    struct NeedsTokio(Log);
    impl Drop for NeedsTokio {
        fn drop(&mut self) {
            drop(tokio::time::sleep(Duration::from_millis(1)));
            self.0.note("dropped inside");
        }
    }
    let log = Log::default();
    let inside = log.clone();
    let outcome = runtime().block_on(async move {
        let guest = tokio_guest(|| {
            let (needs, sleep) = (NeedsTokio(inside), tokio::time::sleep(Duration::from_secs(3600)));
            async move {
                let _needs = needs;
                sleep.await;
            }
        });
        timeout(Duration::from_millis(1), guest).await.is_err()
    });
    assert!(outcome.unwrap(), "the stop dropped it where it waited");
    assert_eq!(log.lines(), ["dropped inside"]);
}

#[test]
fn in_a_tokio_program_the_guest_uses_the_programs_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let id = runtime.handle().id();
    let used = runtime
        .block_on(run(async { tokio_guest(|| async { tokio::runtime::Handle::current().id() }).await }));
    assert_eq!(used, Ok(id));
}

#[test]
fn without_an_io_context_and_outside_tokio_it_panics_with_its_line() {
    let panicked = std::panic::catch_unwind(|| block_on(async { tokio_guest(|| async {}).await }));
    let panic = panicked.unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.contains("guest.rs") && message.contains("no I/O context"), "{message}");
}

/// The hook is the process's, and tests may share one.
static HOOK: Mutex<()> = Mutex::new(());

fn problems(test: impl FnOnce()) -> Vec<String> {
    let _one_at_a_time = HOOK.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (tell, told) = mpsc::channel();
    set_cleanup_hook(move |problem| tell.send(problem.to_string()).unwrap());
    test();
    set_cleanup_hook(|problem| eprintln!("{problem}"));
    told.try_iter().filter(|problem| problem.contains("GuestRuntime")).collect()
}

#[test]
fn tasks_that_guests_spawned_are_waited_for_when_the_runtime_closes() {
    let log = Log::default();
    let inside = log.clone();
    let problems = problems(|| {
        let runtime = runtime();
        let outcome = runtime.block_on(async move {
            tokio_guest(|| async move {
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    inside.note("detached task ended");
                });
            })
            .await;
        });
        outcome.unwrap();
        drop(runtime);
    });
    assert_eq!(log.lines(), ["detached task ended"]);
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn tasks_that_do_not_end_are_dropped_and_the_report_names_the_guest() {
    let log = Log::default();
    let inside = log.clone();
    let problems = problems(|| {
        let runtime = runtime();
        let outcome = runtime.block_on(async move {
            let impatient = GuestRuntime::with_grace(Duration::from_millis(1)).unwrap();
            with_services(|services| services.make_service(|_| impatient).map(drop)).unwrap().unwrap();
            tokio_guest(|| async move {
                for _ in 0..2 {
                    let dropped = OnDrop(inside.clone(), "detached task dropped");
                    tokio::spawn(async move {
                        let _dropped = dropped;
                        std::future::pending::<()>().await
                    });
                }
            })
            .await;
        });
        outcome.unwrap();
        drop(runtime);
    });
    assert_eq!(log.lines(), ["detached task dropped", "detached task dropped"]);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("2 tokio tasks had not ended in time, and were dropped"), "{problems:?}");
    let told = "; guests have spawned tasks at convoke-tokio/tests/it/guest.rs:";
    assert!(problems[0].contains(told) && problems[0].ends_with(" (2 spawned)"), "{problems:?}");
}

/// Tasks that a foreign crate spawns later, by a handle or from its tasks, cannot be told from others.
#[test]
fn if_no_guest_was_seen_to_spawn_the_report_names_all_of_them() {
    let problems = problems(|| {
        let runtime = runtime();
        let outcome = runtime.block_on(async move {
            let impatient = GuestRuntime::with_grace(Duration::from_millis(1)).unwrap();
            with_services(|services| services.make_service(|_| impatient).map(drop)).unwrap().unwrap();
            for _ in 0..2 {
                tokio_guest(|| async {}).await;
            }
            tokio_guest(|| async {}).await;
            drop(use_service::<GuestRuntime>().unwrap().handle().spawn(std::future::pending::<()>()));
        });
        outcome.unwrap();
        drop(runtime);
    });
    assert_eq!(problems.len(), 1, "{problems:?}");
    let (_, lines) = problems[0].split_once("; the guests were at ").expect("they are named");
    assert_eq!(lines.matches("convoke-tokio/tests/it/guest.rs:").count(), 2, "{lines}");
}

/// A service that was there before the guest runtime, and so is open until that has closed.
struct Older(Log);

impl Service for Older {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }

    async fn close(&self) {
        self.0.note("older service closed");
    }
}

struct Newer(Log);

impl Service for Newer {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }

    async fn close(&self) {
        // It may still use the guest runtime, which is older.
        let said =
            tokio_guest(|| async { tokio::spawn(async { "newer service closed" }).await.unwrap() }).await;
        self.0.note(said);
    }
}

#[test]
fn the_runtime_closes_in_order_among_the_services() {
    let log = Log::default();
    let inside = log.clone();
    let runtime = runtime();
    let outcome = runtime.block_on(async move {
        let older = inside.clone();
        with_services(|services| services.make_service(|_| Older(older)).map(drop)).unwrap().unwrap();
        let spawns = inside.clone();
        tokio_guest(|| async move {
            let ends = OnDrop(spawns, "task of the guest ended");
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                drop(ends);
            });
        })
        .await;
        with_services(|services| services.make_service(|_| Newer(inside)).map(drop)).unwrap().unwrap();
        assert!(use_service::<GuestRuntime>().unwrap().handle().metrics().num_alive_tasks() > 0);
    });
    outcome.unwrap();
    drop(runtime);
    let lines = log.lines();
    assert_eq!(lines.last().unwrap(), "older service closed", "{lines:?}");
    assert_eq!(lines.len(), 3, "{lines:?}");
}

/// Without waiting: the thread ends by itself.
#[test]
fn a_context_that_is_shut_down_reports_the_tasks_that_are_left() {
    let problems = problems(|| {
        let context = Context::new();
        let guest = context.make_service(|_| GuestRuntime::from_context(&Context::new())).unwrap();
        drop(guest.handle().spawn(std::future::pending::<()>()));
        context.shutdown();
    });
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("1 tokio task had not ended in time, and was dropped"), "{problems:?}");
}
