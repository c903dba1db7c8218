//! Scopes, clean-up, time, locks and the tree of tasks inside `run`.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use convoke::inspect::tree;
use convoke::prelude::*;
use convoke::sync::{Mutex, Semaphore, mpsc};
use convoke::task::{forever, stopped};
use convoke_tokio::run;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use crate::log::{Log, OnDrop, Transaction};

#[tokio::test]
async fn children_take_turns_with_tokios_own_tasks() {
    let sum = run(async {
        scope(async |s| {
            let ours = s.spawn_future(async {
                sleep(Duration::from_millis(1)).await;
                1
            });
            let theirs = s.spawn_future(async {
                tokio::time::sleep(Duration::from_millis(1)).await;
                tokio::spawn(async { 10 }).await.unwrap()
            });
            let blocks = s.spawn_future(async { blocking(|_| 100).await });
            ours.await + theirs.await + blocks.await
        })
        .await
    });
    assert_eq!(sum.await, Ok(111));
}

#[tokio::test(start_paused = true)]
async fn the_paused_clock_of_tokio_drives_sleeps_and_timeouts() {
    let begun = Instant::now();
    run(async {
        scope(async |s| {
            s.spawn(async { sleep(Duration::from_secs(3600)).await });
            s.spawn(async { tokio::time::sleep(Duration::from_secs(1800)).await });
        })
        .await;
        assert!(timeout(Duration::from_secs(60), tokio::time::sleep(Duration::from_secs(90))).await.is_err());
        assert!(timeout(Duration::from_secs(60), forever()).await.is_err());
    })
    .await
    .unwrap();
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(3720) && took < Duration::from_secs(3721), "{took:?}");
}

/// A timer that was disarmed leaves no timer of tokio's behind, to which the paused clock would jump.
#[tokio::test(start_paused = true)]
async fn a_timeout_that_did_not_pass_does_not_move_the_paused_clock() {
    let (done, told) = tokio::sync::oneshot::channel::<()>();
    let chain = tokio::spawn(run(async {
        timeout(Duration::from_secs(3600), checkpoint()).await.unwrap();
        told.await.unwrap();
    }));
    let begun = Instant::now();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
    done.send(()).unwrap();
    chain.await.unwrap().unwrap();
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn clean_up_is_awaited_before_a_timeout_returns() {
    let log = Log::default();
    let inside = log.clone();
    run(async move {
        let body = using(Transaction(inside.clone()), async |_| {
            let _dropped = OnDrop(inside.clone(), "body dropped");
            tokio::time::sleep(Duration::from_secs(3600)).await;
        });
        assert!(timeout(Duration::from_secs(1), body).await.is_err());
        inside.note("timed out");
        using(Transaction(inside), async |_| ()).await;
    })
    .await
    .unwrap();
    assert_eq!(log.lines(), ["body dropped", "rollback", "timed out", "commit"]);
}

#[tokio::test]
async fn locks_permits_and_channels_connect_children_and_tokio_tasks() {
    let (to_tokio, mut at_tokio) = mpsc::channel(1);
    let (to_chain, mut at_chain) = tokio::sync::mpsc::channel(1);
    let tokios = tokio::spawn(async move {
        while let Some(n) = at_tokio.recv().await {
            to_chain.send(2 * n).await.unwrap();
        }
    });
    let sum = run(async move {
        let (sum, permits) = (Arc::new(Mutex::new(0)), Arc::new(Semaphore::new(2)));
        scope(async |s| {
            s.spawn(async move {
                for n in 1..=10 {
                    to_tokio.send(n).await.unwrap();
                }
            });
            while let Some(n) = at_chain.recv().await {
                let (sum, permits) = (sum.clone(), permits.clone());
                s.spawn(async move {
                    let _permit = permits.acquire().await;
                    *sum.lock().await += n;
                });
            }
        })
        .await;
        *sum.lock().await
    });
    assert_eq!(sum.await, Ok(110));
    tokios.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokios_sockets_work_in_children_on_a_multi_thread_runtime() {
    let echoed = tokio::spawn(run(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        scope(async |s| {
            s.spawn(async move {
                let (mut client, _) = listener.accept().await?;
                let mut byte = [0];
                client.read_exact(&mut byte).await?;
                client.write_all(&byte).await
            });
            let mut server = tokio::net::TcpStream::connect(address).await?;
            server.write_all(&[7]).await?;
            let mut byte = [0];
            server.read_exact(&mut byte).await?;
            std::io::Result::Ok(byte[0])
        })
        .await
    }));
    assert_eq!(echoed.await.unwrap().unwrap().unwrap(), 7);
}

#[tokio::test]
async fn a_panic_goes_on_in_the_tokio_task_that_awaits() {
    let chain = run(async { scope(async |s| s.spawn(async { panic!("a mistake") })).await }).named("clumsy");
    let error = tokio::spawn(chain).await.unwrap_err();
    let panic = error.into_panic();
    let message = panic.downcast_ref::<String>().expect("the message names the task");
    assert!(message.contains("a mistake"), "{message}");
}

#[tokio::test]
async fn a_stop_is_told_with_its_reason() {
    let source = StopSource::new();
    let asks = source.clone();
    let chain = run(async move {
        asks.request_stop(StopReason::Named("reload"));
        forever().await
    });
    assert_eq!(
        chain.stop_token(source.token()).await.unwrap_err().reason(),
        Some(StopReason::Named("reload"))
    );
    assert_eq!(run(async { stopped().await }).await.map(|(): ()| ()).unwrap_err().reason(), None);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_of_the_token_is_inherited() {
    let now = Instant::now().into_std();
    let source = StopSource::with_deadline(now + Duration::from_secs(5));
    let chain = run(async { convoke::env::current::deadline() }).stop_token(source.token());
    assert_eq!(chain.await.unwrap(), Some(now + Duration::from_secs(5)));
}

#[tokio::test]
async fn the_tree_shows_the_chain_and_its_children() {
    let printed = run(async {
        scope(async |s| {
            let _reader = s.named("reader").spawn_future(async { forever().await });
            checkpoint().await;
            tree().find("handler").unwrap().to_string()
        })
        .await
    })
    .named("handler");
    let printed = printed.await.unwrap();
    assert!(
        printed.contains("`handler`") && printed.contains("inside.rs") && printed.contains("`reader`"),
        "{printed}"
    );
    assert!(tree().find("handler").is_none());
}

tokio::task_local! {
    static REQUEST: u32;
}

/// As it runs in the very task that awaits it, what surrounds that task surrounds it, too.
#[tokio::test]
async fn task_locals_of_tokio_are_seen_by_children() {
    let chain = run(async { scope(async |s| s.spawn_future(async { REQUEST.get() }).await).await });
    assert_eq!(REQUEST.scope(7, chain).await, Ok(7));
}

#[tokio::test]
async fn nothing_happens_before_it_is_awaited() {
    let log = Log::default();
    let dropped = OnDrop(log.clone(), "dropped unpolled");
    let chain = run(async move {
        drop(dropped);
        unreachable!("it is not awaited");
    });
    assert!(log.lines().is_empty());
    drop(chain);
    assert_eq!(log.lines(), ["dropped unpolled"]);
}

#[test]
fn outside_tokio_it_panics_with_the_line_that_called_it() {
    let mut chain = Box::pin(run(async {}));
    let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _: Poll<_> = chain.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }));
    let panic = polled.unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.contains("inside.rs") && message.contains("tokio runtime"), "{message}");
}

/// Polled on one thread, and then on another: the loop belongs to neither.
#[test]
fn a_chain_moves_from_thread_to_thread_between_its_polls() {
    let runtime = crate::log::multi_thread(1);
    let entered = runtime.enter();
    let (tell, told) = convoke::sync::oneshot::channel();
    let mut chain = Box::pin(run(async move {
        let here = std::thread::current().id();
        let child = scope(async |s| s.spawn_future(async move { told.await.unwrap() }).await).await;
        (child, here != std::thread::current().id())
    }));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(chain.as_mut().poll(&mut cx).is_pending());
    tell.send(7).unwrap();
    let ended = std::thread::scope(|threads| {
        threads
            .spawn(|| {
                let _entered = runtime.enter();
                chain.as_mut().poll(&mut Context::from_waker(Waker::noop()))
            })
            .join()
            .unwrap()
    });
    assert_eq!(ended, Poll::Ready(Ok((7, true))));
    drop(entered);
}
