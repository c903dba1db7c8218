//! Chaos on the network: what is read is always a prefix of what was written, and a clean end is the real
//! end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use convoke::net::{SocketOption, TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::sim::{Link, Sim, explore_seeds};

const BYTES: usize = 20_000;
const CONNECTIONS: usize = 3;
const SECOND: Duration = Duration::from_secs(1);

fn byte(at: usize) -> u8 {
    (at % 251) as u8
}

/// The number of connections by how they ended.
#[derive(Debug, Default)]
struct Ends {
    whole: AtomicUsize,
    broken: AtomicUsize,
}

/// Reads slowly, and compares.
async fn listen(stream: &TcpStream) -> io::Result<usize> {
    stream.set_option(SocketOption::KeepAlive(Some(20 * SECOND)))?;
    let mut heard = 0;
    let mut buffer = [0; 700];
    loop {
        let count = stream.read(&mut buffer).await?;
        for (at, heard_byte) in buffer[..count].iter().enumerate() {
            assert_eq!(*heard_byte, byte(heard + at));
        }
        heard += count;
        if count == 0 {
            return Ok(heard);
        }
        sleep(Duration::from_millis(3)).await;
    }
}

async fn reader(ends: Arc<Ends>) -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:7").await?;
    scope(async |s| {
        loop {
            let (stream, _) = listener.accept().await?;
            let ends = ends.clone();
            s.spawn(async move {
                match listen(&stream).await {
                    Ok(heard) => {
                        assert_eq!(heard, BYTES, "it ended without an error");
                        ends.whole.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(_) => _ = ends.broken.fetch_add(1, Ordering::Relaxed),
                }
            });
        }
    })
    .await
}

/// Writes everything and shuts down its direction; or gets an error and resets the connection.
async fn speak() -> io::Result<()> {
    let stream = TcpStream::connect("reader:7").await?;
    let words: Vec<u8> = (0..BYTES).map(byte).collect();
    if let Err(error) = stream.write_all(&words).await {
        stream.set_option(SocketOption::Linger(Some(Duration::ZERO)))?;
        return Err(error);
    }
    Ok(())
}

fn chaos(sim: &mut Sim, ends: &Arc<Ends>) {
    sim.links(Link::rough().resets(0.002));
    let shared = ends.clone();
    sim.host("reader").daemon().receive_window(2000).run(move || reader(shared.clone()));
    sim.host("writer").run(|| async {
        sleep(SECOND / 10).await;
        for _ in 0..CONNECTIONS {
            // Errors of the network are expected.
            let _ = speak().await;
        }
        // By then keep-alive has detected all broken connections.
        sleep(600 * SECOND).await;
    });
    for _ in 0..sim.random(6) {
        let (at, what) = (sim.random(20_000) as u64, sim.random(5));
        sim.at(Duration::from_millis(at), move |sim| match what {
            0 => sim.partition("reader", "writer"),
            1 => sim.partition_one_way("reader", "writer"),
            2 => sim.reset("reader", "writer"),
            3 => sim.half_open("writer", "reader"),
            _ => sim.heal_all(),
        });
    }
    sim.at(25 * SECOND, |sim| sim.heal_all());
}

#[test]
fn bytes_are_never_lost_in_the_middle_nor_made_up() {
    let ends = Arc::new(Ends::default());
    // One seed is enough for Miri to check the use of memory.
    if cfg!(miri) {
        return drop(explore_seeds(0..1, |sim| chaos(sim, &ends)));
    }
    explore_seeds(0..60, |sim| chaos(sim, &ends));
    let (whole, broken) = (ends.whole.load(Ordering::Relaxed), ends.broken.load(Ordering::Relaxed));
    assert!(whole > 20 && broken > 20, "both happen: {ends:?}");
}
