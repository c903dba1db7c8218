//! Crashes during every kind of wait: the memory is freed, and no code of the host runs after the crash.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use convoke::executor::Strand;
use convoke::net::{TcpListener, TcpStream, UdpSocket, UnixStream};
use convoke::prelude::*;
use convoke::sim::{Link, Sim, explore_seeds};
use convoke::sync::{Mutex, mpsc};
use convoke::time::now;

const MILLISECOND: Duration = Duration::from_millis(1);

/// State that all runs of the host share: whether it is down.
#[derive(Clone, Default)]
struct HostStatus {
    is_down: Arc<AtomicBool>,
}

impl HostStatus {
    /// Fails if the host is down. Called wherever the program runs.
    fn runs(&self) {
        assert!(!self.is_down.load(Ordering::Relaxed), "it has crashed");
    }
}

/// Waits in all ways at once, with clean-up in each.
async fn juggles(status: HostStatus) -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:7").await?;
    let lock = Arc::new(Mutex::new(0));
    let (sender, mut receiver) = mpsc::channel::<u32>(1);
    let strand = Strand::new(convoke::env::current::executor());
    scope(async |s| {
        for number in 0..3 {
            let (lock, status, sender) = (lock.clone(), status.clone(), sender.clone());
            let clean_up = {
                let status = status.clone();
                async move |_| {
                    status.runs();
                    sleep(MILLISECOND).await;
                    status.runs();
                }
            };
            s.child().on(&strand).spawn(ensure(clean_up, async move {
                for round in 0.. {
                    let mut held = lock.lock().await;
                    *held += 1;
                    status.runs();
                    sleep(2 * MILLISECOND).await;
                    drop(held);
                    let _ = timeout(5 * MILLISECOND, sender.send(number + round)).await;
                }
            }));
        }
        let counts = status.clone();
        s.spawn(async move {
            while let Some(number) = receiver.recv().await {
                counts.runs();
                let waits = (0..number % 4).map(|wait| sleep(MILLISECOND * (wait + 1)));
                let _ = race(waits.collect::<Vec<_>>()).await;
            }
        });
        let owned = status.clone();
        s.spawn(async move {
            let Ok((one, other)) = UnixStream::pair() else { return };
            loop {
                // The driver owns the buffer meanwhile.
                let _ = join((one.read_owned(vec![0; 8]), sleep(3 * MILLISECOND))).await;
                owned.runs();
                let _ = other.write_all(b"more").await;
            }
        });
        loop {
            let (stream, _) = listener.accept().await?;
            let status = status.clone();
            s.spawn(async move {
                while let Ok(1..) = stream.read(&mut [0; 16]).await {
                    status.runs();
                    let _ = stream.write_all(&[1; 600]).await;
                }
            });
        }
    })
    .await
}

/// Sends and receives until something fails.
async fn talks() -> io::Result<()> {
    let stream = TcpStream::connect("server:7").await?;
    let socket = UdpSocket::bind("0.0.0.0:0").await?;
    loop {
        stream.write_all(b"hello").await?;
        stream.read_exact(&mut [0; 600]).await?;
        socket.send_to(b"hello", ([10, 0, 0, 1], 9).into()).await?;
    }
}

async fn client() {
    let until = now() + 300 * MILLISECOND;
    while now() < until {
        let _ = timeout(40 * MILLISECOND, talks()).await;
    }
}

fn set_up(sim: &mut Sim) {
    let status = HostStatus::default();
    sim.links(Link::usual().loss(0.05));
    sim.host("server").receive_window(1000).daemon().run_with(status.clone(), juggles);
    for name in ["one", "two"] {
        sim.host(name).run(client);
    }
    for _ in 0..1 + sim.random(6) {
        let (at, down) = (MILLISECOND * sim.random(300) as u32, MILLISECOND * sim.random(30) as u32);
        let (crashes, starts) = (status.clone(), status.clone());
        sim.at(at, move |sim| {
            sim.crash("server");
            crashes.is_down.store(true, Ordering::Relaxed);
        });
        sim.at(at + down, move |sim| {
            starts.is_down.store(false, Ordering::Relaxed);
            sim.restart("server");
        });
    }
}

#[test]
fn whatever_a_host_was_in_the_midst_of_its_memory_comes_back() {
    // The simulation itself reports memory that was not freed.
    if cfg!(miri) {
        return drop(explore_seeds(0..1, set_up));
    }
    let reports = explore_seeds(0..60, set_up);
    let starts: usize =
        reports.iter().filter_map(|report| report.host("server")).map(|host| host.starts()).sum();
    assert!(starts > 200, "{starts}");
}
