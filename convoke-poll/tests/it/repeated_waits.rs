//! Sources whose waiters change. The driver caches the last waker; it wakes only the current waiter, on any
//! executor and any thread.

use core::net::{Ipv4Addr, SocketAddr};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use convoke_core::env::{Changes, FrameAllocator};
use convoke_core::frames::Counting;
use convoke_exec::{Limited, ThreadPool};
use convoke_io::{IoContext, current_driver};
use convoke_net::net::{TcpListener, TcpStream};
use convoke_poll::PollDriver;
use convoke_task::{checkpoint, run_on, scope, try_join};

const FORMS: [fn() -> io::Result<PollDriver>; 3] =
    [PollDriver::new, PollDriver::portable, PollDriver::portable_without_edges];

const ROUNDS: u8 = 5;

fn contexts() -> impl Iterator<Item = IoContext> {
    FORMS.into_iter().map(|make| IoContext::new(Arc::new(make().expect("a driver can be created"))))
}

async fn connection() -> io::Result<(TcpStream, Arc<TcpStream>)> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    let address = listener.local_addr()?;
    let (near, (far, _)) = try_join((TcpStream::connect(address), listener.accept())).await?;
    Ok((near, Arc::new(far)))
}

/// Waits until the driver counts a waiter.
async fn wait_for_waiter() -> io::Result<()> {
    let driver = current_driver()?;
    while driver.in_flight() == 0 {
        checkpoint().await;
    }
    Ok(())
}

async fn read_one(stream: Arc<TcpStream>) -> io::Result<u8> {
    let mut buffer = [0; 8];
    assert_eq!(stream.read(&mut buffer).await?, 1);
    Ok(buffer[0])
}

#[test]
fn one_task_after_the_other_reads_from_one_stream() {
    for context in contexts() {
        let program = async {
            let (near, far) = connection().await?;
            scope(async |s| {
                for round in 0..ROUNDS {
                    let reads = s.spawn_future(read_one(far.clone()));
                    wait_for_waiter().await?;
                    near.write_all(&[round]).await?;
                    assert_eq!(reads.await?, round);
                }
                io::Result::Ok(())
            })
            .await
        };
        context.block_on(program).unwrap().expect("the program succeeds");
        assert_eq!(context.driver().in_flight(), 0, "there are no waiters left");
    }
}

/// Reads one byte after the other, each before the next one is written.
async fn reads_each(far: Arc<TcpStream>, read: Arc<AtomicU8>, mut each: impl FnMut() + Send) {
    for round in 0..ROUNDS {
        assert_eq!(read_one(far.clone()).await.expect("a byte"), round);
        each();
        read.store(round + 1, Ordering::Relaxed);
    }
}

/// Writes one byte after the other, each when the reader waits for it.
async fn writes_each(near: &TcpStream, read: &AtomicU8) -> io::Result<()> {
    for round in 0..ROUNDS {
        while read.load(Ordering::Relaxed) < round {
            checkpoint().await;
        }
        wait_for_waiter().await?;
        near.write_all(&[round]).await?;
    }
    Ok(())
}

#[test]
fn one_task_reads_again_and_again() {
    for context in contexts() {
        let program = async {
            let (near, far) = connection().await?;
            let read = Arc::default();
            scope(async |s| {
                s.spawn(reads_each(far, Arc::clone(&read), || {}));
                writes_each(&near, &read).await
            })
            .await
        };
        context.block_on(program).unwrap().expect("the program succeeds");
        assert_eq!(context.driver().in_flight(), 0, "there are no waiters left");
    }
}

#[test]
fn a_reader_on_a_view_of_the_context_stays_there() {
    for context in contexts() {
        let view = Limited::new(&context.executor(), 1);
        let program = async {
            let (near, far) = connection().await?;
            let read = Arc::default();
            scope(async |s| {
                let seen = view.clone();
                let stays = move || assert!(seen.is_running_here(), "woken on another executor");
                s.child().on(&view).spawn(reads_each(far, Arc::clone(&read), stays));
                writes_each(&near, &read).await
            })
            .await
        };
        context.block_on(program).unwrap().expect("the program succeeds");
    }
}

#[test]
fn a_stream_moves_to_a_pool_and_back() {
    let pool = ThreadPool::new(2).expect("two threads");
    let elsewhere = pool.executor();
    for context in contexts() {
        let program = async {
            let (near, far) = connection().await?;
            scope(async |s| {
                for round in 0..ROUNDS {
                    let far = far.clone();
                    let reads = s.spawn_future(async move {
                        if round % 2 == 0 {
                            run_on(&elsewhere, read_one(far)).await
                        } else {
                            read_one(far).await
                        }
                    });
                    wait_for_waiter().await?;
                    near.write_all(&[round]).await?;
                    assert_eq!(reads.await?, round);
                }
                io::Result::Ok(())
            })
            .await
        };
        context.block_on(program).unwrap().expect("the program succeeds");
    }
}

#[test]
fn the_cached_waker_is_dropped_with_the_stream() {
    for context in contexts() {
        let counting = Counting::new(FrameAllocator::default());
        let changes = Changes::new().allocator(FrameAllocator::new(counting.clone()));
        let program = async {
            let (near, far) = connection().await?;
            scope(async |s| {
                let before = counting.live();
                for round in 0..ROUNDS {
                    let reads = s.spawn_future(read_one(far.clone()));
                    wait_for_waiter().await?;
                    near.write_all(&[round]).await?;
                    assert_eq!(reads.await?, round);
                    assert!(counting.live() <= before + 1, "only the last waker is cached");
                }
                drop(far);
                assert_eq!(counting.live(), before);
                io::Result::Ok(())
            })
            .await
        };
        context.block_on_with(changes, program).unwrap().expect("the program succeeds");
        assert_eq!(counting.live(), 0);
    }
}
