//! Random traffic with stops in between, on one thread and between several. A seed decides the order.

use std::io;
use std::net::Shutdown;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use convoke_core::StopReason;
use convoke_core::raw::Random;
use convoke_exec::ThreadPool;
use convoke_task::{catch_stopped, checkpoint, launch, local_scope, scope};

use super::DriverHarness;
use super::fixture::rest;
use super::threads::run_beside;
use crate::net::{SocketOption, TcpStream};
use convoke_io::{IO, IoContext};

const STEPS: usize = 400;

/// Sends a stream of numbered bytes, in pieces of random lengths, by calls that are stopped at random times.
pub(super) fn traffic_with_stops(harness: &DriverHarness, seed: u64) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        _ = near.set_option(SocketOption::SendBuffer(1 << 12));
        let mut random = Random::new(seed);
        let (mut sent, mut received) = (0, 0);
        local_scope(async |s| {
            for _ in 0..STEPS {
                let mut writer = random.split();
                let mut reader = random.split();
                let data = numbered(sent, writer.below(20_000));
                let write = s.spawn_future(near.write_owned(data).into_future());
                let read = s.spawn_future(far.read_owned(vec![0; 1 + reader.below(30_000)]).into_future());
                for _ in 0..random.below(6) {
                    checkpoint().await;
                }
                write.request_stop(StopReason::Requested);
                if let Ok((written, _)) = catch_stopped(write).await {
                    sent += written?;
                }
                for _ in 0..random.below(3) {
                    checkpoint().await;
                }
                read.request_stop(StopReason::Requested);
                if let Ok((read, bytes)) = catch_stopped(read).await {
                    let read = read?;
                    assert_eq!(bytes[..read], numbered(received, read), "after {received} bytes");
                    received += read;
                }
            }
            io::Result::Ok(())
        })
        .await?;
        near.shutdown(Shutdown::Write)?;
        let left = rest(&far).await?;
        assert_eq!(left, numbered(received, left.len()));
        assert_eq!(sent, received + left.len(), "everything that was written is read");
        Ok(())
    });
}

const SPEAKERS: u64 = 3;

/// Runs several connections, whose two ends are on any thread. Each end is stopped at some time, and
/// everything that was written until then is read.
pub(super) fn traffic_between_threads(harness: &DriverHarness, seed: u64) {
    if harness.one_thread {
        return;
    }
    let context = IoContext::new(harness.driver());
    let pool = ThreadPool::new(2).expect("two threads");
    let mut ends = Vec::new();
    for _ in 0..SPEAKERS {
        ends.push(context.block_on(harness.connection()).unwrap().expect("a connection"));
    }
    let traffic = launch(&pool.executor()).local(&IO, context.executor()).start(async move {
        scope(async |s| {
            for (number, (near, far)) in ends.into_iter().enumerate() {
                let random = Random::new(seed ^ ((number as u64 + 1) << 32));
                s.spawn(one_connection(near, far, random));
            }
            io::Result::Ok(())
        })
        .await
    });
    run_beside(&context, traffic).expect("the connections succeed");
    assert_eq!(context.driver().in_flight(), 0);
}

async fn one_connection(near: TcpStream, far: TcpStream, mut random: Random) -> io::Result<()> {
    let sent = Arc::new(Mutex::new(0));
    let (counts, mut speaks, mut hears) = (sent.clone(), random.split(), random.split());
    let received = scope(async |s| {
        let near = Arc::new(near);
        let speaker = near.clone();
        let write = s.spawn_future(async move {
            loop {
                let from = *counts.lock().unwrap_or_else(PoisonError::into_inner);
                let (written, _) = speaker.write_owned(numbered(from, 1 + speaks.below(9_000))).await;
                *counts.lock().unwrap_or_else(PoisonError::into_inner) += written?;
            }
            #[allow(unreachable_code)]
            io::Result::Ok(())
        });
        let read = s.spawn_future(async move {
            let mut received = 0;
            loop {
                let (read, bytes) = far.read_owned(vec![0; 1 + hears.below(9_000)]).await;
                match read? {
                    0 => return io::Result::Ok(received),
                    read => {
                        assert_eq!(bytes[..read], numbered(received, read));
                        received += read;
                    }
                }
            }
        });
        for _ in 0..50 + random.below(300) {
            checkpoint().await;
        }
        write.request_stop(StopReason::Requested);
        if let Ok(ended) = catch_stopped(write).await {
            ended?;
        }
        near.shutdown(Shutdown::Write)?;
        read.await
    })
    .await?;
    assert_eq!(
        *sent.lock().unwrap_or_else(PoisonError::into_inner),
        received,
        "everything that was written is read"
    );
    Ok(())
}

/// Returns `length` bytes of the stream, starting at `from`.
fn numbered(from: usize, length: usize) -> Vec<u8> {
    /// Not a power of two, so that pieces in a wrong order are detected.
    const PERIOD: usize = 253;
    static PERIODS: LazyLock<Vec<u8>> =
        LazyLock::new(|| (0..PERIOD + LONGEST).map(|n| (n % PERIOD) as u8).collect());
    let (start, mut bytes) = (from % PERIOD, Vec::with_capacity(length));
    while bytes.len() < length {
        let start = (start + bytes.len()) % PERIOD;
        let more = (length - bytes.len()).min(LONGEST);
        bytes.extend_from_slice(&PERIODS[start..start + more]);
    }
    bytes
}

/// The length of the cached part beyond one period.
const LONGEST: usize = 1 << 15;

/// Prints the seed if the test fails.
pub(super) struct PrintSeed(pub(super) u64);

impl Drop for PrintSeed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to reproduce: driver_contract::check_random(&harness, {})", self.0);
        }
    }
}
