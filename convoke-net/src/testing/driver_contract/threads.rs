//! Sockets are used from other threads than the one that waits.

use std::io;
use std::sync::Arc;
use std::thread;

use convoke_core::{Outcome, StopReason, StopSource};
use convoke_exec::ThreadPool;
use convoke_task::{launch, scope, try_join};

use super::Harness;
use crate::net::{TcpListener, TcpStream};
use convoke_io::{IO, IoContext};

const CONNECTIONS: usize = 8;
const ROUNDS: u32 = if cfg!(miri) { 5 } else { 200 };

/// Servers and clients run on a pool, and the context does nothing but wait for them.
pub(super) fn sockets_are_used_from_everywhere(harness: &Harness) {
    if harness.one_thread {
        return;
    }
    let context = IoContext::new(harness.driver());
    let pool = ThreadPool::new(3).expect("three threads");
    let address = harness.address();
    let spoken = launch(&pool.executor()).local(&IO, context.executor()).start(async move {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        scope(async |s| {
            for _ in 0..CONNECTIONS {
                s.spawn(asks(address));
                let (stream, _) = listener.accept().await?;
                s.spawn(answers(stream));
            }
            io::Result::Ok(())
        })
        .await
    });
    run_beside(&context, spoken).expect("nothing goes wrong here");
    assert_eq!(context.driver().in_flight(), 0);
}

async fn asks(address: core::net::SocketAddr) -> io::Result<()> {
    let stream = TcpStream::connect(address).await?;
    for round in 0..ROUNDS {
        let mut heard = [0; 4];
        stream.write_all(&round.to_le_bytes()).await?;
        stream.read_exact(&mut heard).await?;
        assert_eq!(u32::from_le_bytes(heard), round);
    }
    Ok(())
}

async fn answers(stream: TcpStream) -> io::Result<()> {
    let mut room = vec![0; 64];
    loop {
        let (read, bytes) = stream.read_owned(room).await;
        match read? {
            0 => return Ok(()),
            read => stream.write_all(&bytes[..read]).await?,
        }
        room = bytes;
    }
}

/// One thread reads what another writes, in both directions, at full speed: each byte comes once, in its order.
pub(super) fn two_threads_share_a_connection(harness: &Harness) {
    if harness.one_thread {
        return;
    }
    let context = IoContext::new(harness.driver());
    let pool = ThreadPool::new(3).expect("three threads");
    let (near, far) = context.run_until(harness.connection()).unwrap().expect("two ends");
    let spoken = launch(&pool.executor()).local(&IO, context.executor()).start(async move {
        let (near, far) = (Arc::new(near), Arc::new(far));
        scope(async |s| {
            s.spawn(speaks(near.clone()));
            s.spawn(speaks(far.clone()));
            s.spawn(hears(near));
            s.spawn(hears(far));
            io::Result::Ok(())
        })
        .await
    });
    run_beside(&context, spoken).expect("nothing goes wrong here");
}

const BYTES: usize = if cfg!(miri) { 1 << 11 } else { 1 << 20 };

async fn speaks(stream: Arc<TcpStream>) -> io::Result<()> {
    let words: Vec<u8> = (0..BYTES).map(|n| (n % 251) as u8).collect();
    for chunk in words.chunks(777) {
        stream.write_all(chunk).await?;
    }
    Ok(())
}

async fn hears(stream: Arc<TcpStream>) -> io::Result<()> {
    let (mut room, mut heard) = ([0; 1234], 0);
    while heard < BYTES {
        let read = stream.read(&mut room).await?;
        assert_ne!(read, 0);
        for byte in &room[..read] {
            assert_eq!(*byte, (heard % 251) as u8);
            heard += 1;
        }
    }
    Ok(())
}

/// A context that waits for nothing else any more has nothing left to do.
pub(super) fn a_wait_ends_when_the_last_has_left_on_another_thread(harness: &Harness) {
    if harness.one_thread {
        return;
    }
    let context = IoContext::new(harness.driver());
    let pool = ThreadPool::new(1).expect("a thread");
    let listener = context.run_until(TcpListener::bind(harness.address())).unwrap().expect("a free port");
    let source = StopSource::new();
    let accepts = launch(&pool.executor())
        .stop_token(source.token())
        .start(async move { listener.accept().await.map(drop) });
    while context.driver().in_flight() == 0 {
        thread::yield_now();
    }
    source.request_stop(StopReason::Requested);
    assert!(matches!(accepts.wait(), Outcome::Stopped), "nobody has connected");
    context.driver().wait(None).expect("a driver can wait");
    assert_eq!(context.driver().in_flight(), 0);
}

/// Runs the context until the chain has ended, which runs elsewhere.
pub(super) fn run_beside<T: Send + 'static>(
    context: &IoContext,
    chain: convoke_task::Launched<io::Result<T>>,
) -> io::Result<T> {
    context.run_until(async { try_join((chain, async { Ok(()) })).await }).unwrap().map(|(value, ())| value)
}
