//! Sockets are used on other threads than the one that waits.

use std::io;
use std::sync::Arc;
use std::thread;

use convoke_core::{Outcome, StopReason, StopSource};
use convoke_exec::ThreadPool;
use convoke_task::{launch, scope, try_join};

use super::DriverHarness;
use crate::net::{TcpListener, TcpStream};
use convoke_io::{IO, IoContext};

const CONNECTIONS: usize = 8;
const ROUNDS: u32 = if cfg!(miri) { 2 } else { 200 };

/// Runs servers and clients on a pool; the context only waits for events.
pub(super) fn sockets_are_used_on_other_threads(harness: &DriverHarness) {
    if harness.one_thread {
        return;
    }
    let context = IoContext::new(harness.driver());
    let pool = ThreadPool::new(3).expect("three threads");
    let address = harness.address();
    let traffic = launch(&pool.executor()).local(&IO, context.executor()).start(async move {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        scope(async |s| {
            for _ in 0..CONNECTIONS {
                s.spawn(run_client(address));
                let (stream, _) = listener.accept().await?;
                s.spawn(run_server(stream));
            }
            io::Result::Ok(())
        })
        .await
    });
    run_beside(&context, traffic).expect("the clients succeed");
    assert_eq!(context.driver().in_flight(), 0);
}

async fn run_client(address: core::net::SocketAddr) -> io::Result<()> {
    let stream = TcpStream::connect(address).await?;
    for round in 0..ROUNDS {
        let mut received = [0; 4];
        stream.write_all(&round.to_le_bytes()).await?;
        stream.read_exact(&mut received).await?;
        assert_eq!(u32::from_le_bytes(received), round);
    }
    Ok(())
}

async fn run_server(stream: TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; 64];
    loop {
        let (read, bytes) = stream.read_owned(buffer).await;
        match read? {
            0 => return Ok(()),
            read => stream.write_all(&bytes[..read]).await?,
        }
        buffer = bytes;
    }
}

/// Reads on one thread what another writes, in both directions, at full speed: each byte arrives once, in
/// order.
pub(super) fn two_threads_share_a_connection(harness: &DriverHarness) {
    if harness.one_thread {
        return;
    }
    let context = IoContext::new(harness.driver());
    let pool = ThreadPool::new(3).expect("three threads");
    let (near, far) = context.block_on(harness.connection()).unwrap().expect("a connection");
    let traffic = launch(&pool.executor()).local(&IO, context.executor()).start(async move {
        let (near, far) = (Arc::new(near), Arc::new(far));
        scope(async |s| {
            s.spawn(write_numbers(near.clone()));
            s.spawn(write_numbers(far.clone()));
            s.spawn(read_numbers(near));
            s.spawn(read_numbers(far));
            io::Result::Ok(())
        })
        .await
    });
    run_beside(&context, traffic).expect("the transfer succeeds");
}

const BYTES: usize = if cfg!(miri) { 1 << 9 } else { 1 << 20 };

async fn write_numbers(stream: Arc<TcpStream>) -> io::Result<()> {
    let data: Vec<u8> = (0..BYTES).map(|n| (n % 251) as u8).collect();
    for chunk in data.chunks(777) {
        stream.write_all(chunk).await?;
    }
    Ok(())
}

async fn read_numbers(stream: Arc<TcpStream>) -> io::Result<()> {
    let (mut buffer, mut received) = ([0; 1234], 0);
    while received < BYTES {
        let read = stream.read(&mut buffer).await?;
        assert_ne!(read, 0);
        for byte in &buffer[..read] {
            assert_eq!(*byte, (received % 251) as u8);
            received += 1;
        }
    }
    Ok(())
}

/// Tests that a context ends its wait when its last waiter is removed on another thread.
pub(super) fn a_wait_ends_when_another_thread_removes_the_last_waiter(harness: &DriverHarness) {
    if harness.one_thread {
        return;
    }
    let context = IoContext::new(harness.driver());
    let pool = ThreadPool::new(1).expect("a thread");
    let listener = context.block_on(TcpListener::bind(harness.address())).unwrap().expect("a free port");
    let source = StopSource::new();
    let accepts = launch(&pool.executor())
        .stop_token(source.token())
        .start(async move { listener.accept().await.map(drop) });
    while context.driver().in_flight() == 0 {
        thread::yield_now();
    }
    source.request_stop(StopReason::Requested);
    assert!(matches!(accepts.wait(), Outcome::Stopped), "there is no connection");
    context.driver().wait(None).expect("a driver can wait");
    assert_eq!(context.driver().in_flight(), 0);
}

/// Runs the context until a chain has ended that runs elsewhere.
pub(super) fn run_beside<T: Send + 'static>(
    context: &IoContext,
    chain: convoke_task::Launched<io::Result<T>>,
) -> io::Result<T> {
    context.block_on(async { try_join((chain, async { Ok(()) })).await }).unwrap().map(|(value, ())| value)
}
