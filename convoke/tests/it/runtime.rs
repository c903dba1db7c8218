//! A runtime and its contexts: where work and I/O run, and how contexts start and end.
#![cfg(feature = "net")]
#![allow(unsafe_code)]

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use convoke::driver::io_context;
use convoke::env;
use convoke::executor::Strand;
use convoke::net::{TcpListener, TcpStream, UdpSocket};
use convoke::prelude::*;
use convoke::run_on;
use convoke::runtime::{self, Runtime};
use convoke::sender::prelude::*;
use convoke::task::forever;
use convoke::{Executor, launch};

async fn echo_once(listener: TcpListener) -> io::Result<()> {
    let (stream, _) = listener.accept().await?;
    let mut buffer = [0; 64];
    let length = stream.read(&mut buffer).await?;
    stream.write_all(&buffer[..length]).await
}

async fn ask(address: std::net::SocketAddr) -> io::Result<Vec<u8>> {
    let stream = TcpStream::connect(address).await?;
    stream.write_all(b"question").await?;
    let mut answer = vec![0; 8];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

#[test]
fn a_child_on_another_context_uses_that_contexts_driver() {
    let runtime = Runtime::builder().contexts(2).pool_threads(1).build().unwrap();
    let contexts = runtime.contexts().to_vec();
    let answer = runtime.block_on(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        scope(async |s| {
            s.spawn(async move { echo_once(listener).await });
            let there = run_on(&contexts[1], async move {
                let answer = ask(address).await?;
                io::Result::Ok((thread::current().name().map(str::to_owned), answer))
            });
            there.await
        })
        .await
    });
    let (thread, answer) = answer.unwrap().unwrap();
    assert_eq!(thread.as_deref(), Some("convoke-io-1"));
    assert_eq!(answer, b"question");
}

#[test]
fn tasks_on_the_pool_do_their_io_through_the_first_context() {
    let runtime = Runtime::builder().contexts(1).pool_threads(2).build().unwrap();
    let pool = runtime.pool();
    let answer = runtime.block_on(async move {
        scope(async |s| {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            s.child().on(&pool).spawn(echo_once(listener));
            run_on(&pool, ask(address)).await
        })
        .await
    });
    assert_eq!(answer.unwrap().unwrap(), b"question");
}

#[test]
fn without_a_context_the_error_says_what_to_do() {
    let error = sync_wait(task(async { UdpSocket::bind("127.0.0.1:0").await.unwrap_err() })).unwrap();
    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    assert!(error.to_string().contains("#[convoke::main]"), "{error}");
}

#[test]
fn a_name_that_is_none_is_an_error_that_says_how_to_write_one() {
    let context = io_context().unwrap();
    let error = context.block_on(async { TcpStream::connect("no port").await.unwrap_err() }).unwrap();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("127.0.0.1:80"), "{error}");
}

#[test]
fn localhost_is_looked_up() {
    let context = io_context().unwrap();
    let found = context.block_on(async { convoke::net::resolve(("localhost", 80)).await });
    assert!(found.unwrap().unwrap().iter().all(|address| address.ip().is_loopback() && address.port() == 80));
}

#[test]
fn a_context_runs_until_it_is_dry_and_may_be_run_again() {
    let context = io_context().unwrap();
    assert_eq!(context.run(), 0, "there is nothing to do");
    for _ in 0..2 {
        let slept = launch(&context.executor()).start(async {
            sleep(Duration::from_millis(2)).await;
            7
        });
        assert_eq!(context.run(), 2, "until it sleeps, and when the timer has woken it");
        assert_eq!(slept.wait(), Outcome::Value(7));
    }
}

#[test]
fn work_that_is_announced_keeps_a_context_running() {
    let context = io_context().unwrap();
    let (work, executor) = (context.work(), context.executor());
    let outside = thread::spawn(move || {
        let answer = sync_wait(schedule(&executor).then(|()| 42));
        drop(work);
        answer
    });
    context.run();
    assert_eq!(outside.join().unwrap(), Outcome::Value(42));
}

#[test]
fn run_one_runs_one_piece_and_says_when_there_is_none() {
    let context = io_context().unwrap();
    assert!(!context.run_one());
    let launched = launch(&context.executor()).start(async { checkpoint().await });
    assert!(context.run_one());
    assert!(context.run_one());
    while context.run_one() {}
    assert_eq!(launched.wait(), Outcome::Value(()));
}

#[test]
fn the_program_finds_its_runtime_wherever_the_runtime_runs_it() {
    let runtime = Runtime::builder().contexts(2).pool_threads(1).blocking_threads(3).build().unwrap();
    let outside = runtime::current().unwrap_err();
    assert!(outside.to_string().contains("#[convoke::main]"), "{outside}");
    let contexts = runtime.contexts().to_vec();
    let found = runtime.block_on(async move {
        let here = runtime::current()?;
        assert_eq!(here.contexts(), contexts);
        assert_eq!(env::current::runtime()?.pool(), here.pool());
        let number = || runtime::current().map(|found| found.contexts().len());
        let on_the_pool = run_on(&here.pool(), async move { number() }).await?;
        let on_the_other = run_on(&here.contexts()[1], async move { number() }).await?;
        let below_blocking = blocking(move |inside| inside.block_on(async move { number() })).await;
        io::Result::Ok([on_the_pool, on_the_other, below_blocking.unwrap()?])
    });
    assert_eq!(found.unwrap().unwrap(), [2; 3]);
}

#[test]
fn a_chain_that_a_handle_launches_finds_the_runtime_too() {
    let runtime = Runtime::builder().contexts(1).pool_threads(1).build().unwrap();
    let handle = runtime.handle().clone();
    let launched = handle.launch(&handle.pool()).start(async {
        // Its I/O goes through the first context.
        UdpSocket::bind("127.0.0.1:0").await?;
        Ok::<_, io::Error>(runtime::current()?.contexts().len())
    });
    assert_eq!(launched.wait().unwrap().unwrap(), 1);
    let without = launch(&runtime.pool()).start(async { runtime::current().is_err() });
    assert_eq!(without.wait(), Outcome::Value(true));
}

#[test]
fn work_is_spread_over_the_contexts_in_turn_and_on_each() {
    let runtime = Runtime::builder().contexts(2).pool_threads(1).build().unwrap();
    let outcome = runtime.block_on(async {
        let runtime = runtime::current()?;
        let turns: Vec<_> = (0..4).map(|_| runtime.next_context()).collect();
        assert_eq!(turns[..2], turns[2..]);
        assert_ne!(turns[0], turns[1]);
        let (says, heard) = mpsc::channel();
        let on_each = move |index: usize| {
            let says = says.clone();
            async move {
                says.send((index, thread::current().name().map(str::to_owned))).map_err(io::Error::other)
            }
        };
        runtime.on_each_context(on_each).await?;
        let mut heard: Vec<_> = heard.iter().collect();
        heard.sort();
        assert_eq!((heard.len(), heard[0].0), (2, 0));
        assert_eq!(heard[1], (1, Some("convoke-io-1".to_owned())));
        // The first failure stops the others.
        let fails = |index| async move {
            if index == 1 { Err(io::Error::other("on purpose")) } else { forever().await }
        };
        let error = runtime.on_each_context(fails).await.unwrap_err();
        assert_eq!(error.to_string(), "on purpose");
        io::Result::Ok(())
    });
    outcome.unwrap().unwrap();
}

#[test]
fn a_stop_of_a_context_is_not_left_over_for_the_next_run() {
    let context = io_context().unwrap();
    let executor = context.executor();
    let stops = executor.clone();
    // `block_on` does not end by it, and neither does the `run` after that.
    context.block_on(async move { stops.stop() }).unwrap();
    let launched = launch(&executor).start(async { 7 });
    assert_eq!(context.run(), 1);
    assert_eq!(launched.wait(), Outcome::Value(7));
    // Two stops in one run are one.
    let stops = executor.clone();
    let stopping = launch(&executor).start(async move {
        stops.stop();
        stops.stop();
    });
    let launched = launch(&executor).start(async { 8 });
    assert_eq!(context.run(), 1, "the second chain is left");
    context.run();
    assert_eq!((stopping.wait(), launched.wait()), (Outcome::Value(()), Outcome::Value(8)));
}

#[test]
fn a_context_that_is_stopped_leaves_its_work_for_the_next_run() {
    let context = io_context().unwrap();
    let launched = launch(&context.executor()).start(async { 7 });
    context.stop();
    assert_eq!(context.run(), 0);
    context.run();
    assert_eq!(launched.wait(), Outcome::Value(7));
}

#[test]
fn what_is_not_send_lives_on_a_context() {
    let context = io_context().unwrap();
    let shared = Rc::new(Cell::new(0));
    let outcome = context.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (_, answer) = try_join((echo_once(listener), async {
            shared.set(shared.get() + 1);
            ask(address).await
        }))
        .await?;
        io::Result::Ok(answer.len() + shared.get())
    });
    assert_eq!(outcome.unwrap().unwrap(), 9);
}

#[cfg(unix)]
#[test]
fn a_context_in_a_foreign_loop_is_told_by_a_descriptor_and_a_time() {
    use std::os::fd::AsRawFd;

    let context = io_context().unwrap();
    let executor = context.executor();
    assert_eq!(context.poll(), None, "nothing to do, and no time to wait for");
    let descriptor = context.descriptor().expect("this driver has one").as_raw_fd();
    let waits = move || {
        let mut asked = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
        // SAFETY: `asked` is one valid `pollfd`, and the context keeps its descriptor open.
        assert_eq!(unsafe { libc::poll(&raw mut asked, 1, 10_000) }, 1, "it became readable");
    };
    // Work from another thread.
    let outside = thread::spawn(move || sync_wait(schedule(&executor).then(|()| 42)));
    waits();
    context.poll();
    assert_eq!(outside.join().unwrap(), Outcome::Value(42));
    // A timer.
    let slept = launch(&context.executor()).start(async { sleep(Duration::from_millis(5)).await });
    let until = context.poll().expect("a timer is set");
    thread::park_timeout(until.saturating_duration_since(std::time::Instant::now()));
    while context.poll().is_some() {
        thread::yield_now();
    }
    assert_eq!(slept.wait(), Outcome::Value(()));
}

/// If one of them did not signal the descriptor, the foreign loop would wait forever.
#[cfg(unix)]
#[test]
fn a_context_in_a_foreign_loop_is_told_of_posts_timers_and_sockets_that_come_while_it_dozes() {
    use std::os::fd::AsRawFd;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const ROUNDS: usize = 200;
    const THREADS: usize = 3;

    let context = io_context().unwrap();
    let (near, far) = context.block_on(async { convoke::net::UnixStream::pair() }).unwrap().unwrap();
    let descriptor = context.descriptor().expect("this driver has one").as_raw_fd();
    let running = AtomicUsize::new(THREADS);
    let executor = context.executor();
    thread::scope(|threads| {
        let (executor, running) = (&executor, &running);
        // Runs on the context, so that the foreign loop sees it.
        let leaves = move || {
            let left = schedule(executor).then(|()| running.fetch_sub(1, Ordering::Relaxed));
            assert!(sync_wait(left).is_value());
        };
        threads.spawn(move || {
            (0..ROUNDS).for_each(|round| {
                assert_eq!(sync_wait(schedule(executor).then(move |()| round)), Outcome::Value(round));
            });
            leaves();
        });
        threads.spawn(move || {
            for round in 0..ROUNDS as u64 {
                let a_while = Duration::from_micros(round % 7 * 100);
                let slept = launch(executor).start(async move { sleep(a_while).await });
                assert_eq!(slept.wait(), Outcome::Value(()));
            }
            leaves();
        });
        threads.spawn(move || {
            let echo = launch(executor).start(async move {
                let mut room = [0; 8];
                while far.read_exact(&mut room).await.is_ok() {
                    far.write_all(&room).await.expect("somebody listens");
                }
            });
            let asked = sync_wait(task(async move {
                for round in 0..ROUNDS {
                    let mut heard = [0; 8];
                    near.write_all(&round.to_le_bytes()).await?;
                    near.read_exact(&mut heard).await?;
                    assert_eq!(usize::from_le_bytes(heard), round);
                }
                io::Result::Ok(())
            }));
            asked.unwrap().expect("nobody hangs up");
            assert_eq!(echo.wait(), Outcome::Value(()));
            leaves();
        });
        loop {
            let until = context.poll();
            if running.load(Ordering::Relaxed) == 0 {
                break;
            }
            let left = until.map(|until| until.saturating_duration_since(std::time::Instant::now()));
            let most = left.map_or(-1, |left| left.as_micros().div_ceil(1000) as i32);
            let mut asked = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
            // SAFETY: `asked` is one valid `pollfd`, and the context keeps its descriptor open.
            unsafe { libc::poll(&raw mut asked, 1, most) };
        }
    });
}

#[test]
fn contexts_and_pool_pass_their_drivers_through_wrappers() {
    let context = io_context().unwrap();
    let strand = Strand::new(context.executor());
    assert!(strand.context().is_some());
}

#[test]
fn a_runtime_that_ends_waits_for_no_chain_whatever_that_waits_for() {
    let runtime = Runtime::builder().contexts(2).pool_threads(1).build().unwrap();
    let (begun, both_wait) = mpsc::channel();
    let launched: Vec<_> = runtime
        .contexts()
        .iter()
        .map(|context| {
            let begun = begun.clone();
            let accepts = launch(context).start(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await?;
                let says = async move { begun.send(()).map_err(io::Error::other) };
                try_join((async { listener.accept().await.map(drop) }, says)).await.map(drop)
            });
            (accepts, launch(context).start(forever()))
        })
        .collect();
    let until_both_wait = async {
        let mut waiting = 0;
        while waiting < 2 {
            waiting += both_wait.try_iter().count();
            checkpoint().await;
        }
    };
    runtime.block_on(until_both_wait).unwrap();
    drop(runtime);
    for (accepts, waits) in launched {
        assert_eq!(accepts.wait().map(|accepted| accepted.is_ok()), Outcome::Stopped);
        drop(waits);
    }
}

#[test]
fn blocking_work_is_done_by_the_threads_of_the_runtime() {
    let runtime = Runtime::builder().contexts(1).pool_threads(1).blocking_threads(1).build().unwrap();
    let (threads, pool) = (runtime.blocking().clone(), runtime.pool());
    let outcome = runtime.block_on(async move {
        let its_own = threads.run(|_| thread::current().id()).await;
        let here = blocking(|_| thread::current().id()).await;
        let below = run_on(&pool, async { blocking(|_| thread::current().id()).await }).await;
        [here, below].map(|thread| thread == its_own)
    });
    assert_eq!(outcome.unwrap(), [true; 2], "there is one thread, and it is kept for a while");
}

#[test]
fn what_comes_back_from_blocking_work_does_its_io_as_the_task_that_waits() {
    let runtime = Runtime::builder().contexts(1).pool_threads(1).build().unwrap();
    let pool = runtime.pool();
    let outcome = runtime.block_on(async move {
        run_on(&pool, async {
            blocking(|inside| inside.block_on(async { TcpListener::bind("127.0.0.1:0").await?.local_addr() }))
                .await
        })
        .await
    });
    assert!(outcome.unwrap().unwrap().unwrap().ip().is_loopback());
}

/// Returns the number of threads of this process whose name starts like that.
#[cfg(target_os = "linux")]
fn threads_named(start: &str) -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        threads.filter_map(|thread| std::fs::read_to_string(thread.unwrap().path().join("comm")).ok());
    names.filter(|name| name.starts_with(start)).count()
}

#[cfg(target_os = "linux")]
#[test]
fn the_pool_starts_when_it_is_first_asked_for() {
    let runtime = Runtime::builder().contexts(1).build().unwrap();
    assert_eq!(threads_named("convoke-pool"), 0);
    let outcome = runtime.block_on(async {
        let pool = runtime::current().unwrap().pool();
        run_on(&pool, async { thread::current().name().map(str::to_owned) }).await
    });
    let name = outcome.unwrap().expect("a thread of the pool has a name");
    assert!(name.starts_with("convoke-pool") && threads_named("convoke-pool") > 0, "{name}");
    drop(runtime);
    assert_eq!(threads_named("convoke-pool"), 0);
}
