//! Echo over simulated TCP: one server, and clients on hosts of their own. The links are the usual ones, and
//! a trace is recorded, as in every simulation.

use std::io;
use std::time::{Duration, Instant};

use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::sim::Sim;

use super::super::{CONVOKE, Scenario};

/// The size of a message in bytes.
const MESSAGE: usize = 64;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(10, "sim_echo_10", "a message of 64 bytes over simulated TCP, with 10 clients"),
        scenario(100, "sim_echo_100", "a message of 64 bytes over simulated TCP, with 100 clients"),
    ]
}

/// Creates a scenario whose op is a message: a request or its answer.
fn scenario(clients: u64, name: &'static str, about: &'static str) -> Scenario {
    Scenario::new(name, about).batch(2 * clients).contestant(CONVOKE, move || {
        move |ops| {
            let rounds = ops / (2 * clients);
            let mut sim = Sim::new(1);
            sim.step_limit(usize::MAX);
            sim.time_limit(Duration::MAX);
            sim.host("server").daemon().run(server);
            for number in 0..clients {
                sim.host(&format!("client {number}")).run(move || client(rounds));
            }
            let start = Instant::now();
            sim.run();
            start.elapsed()
        }
    })
}

async fn server() -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:7").await?;
    scope(async |s| {
        loop {
            let (stream, _) = listener.accept().await?;
            s.spawn(async move {
                let mut message = [0; MESSAGE];
                while stream.read_exact(&mut message).await.is_ok() {
                    if stream.write_all(&message).await.is_err() {
                        break;
                    }
                }
            });
        }
    })
    .await
}

async fn client(rounds: u64) -> io::Result<()> {
    let stream = TcpStream::connect("server:7").await?;
    let mut message = [0; MESSAGE];
    for _ in 0..rounds {
        stream.write_all(&message).await?;
        stream.read_exact(&mut message).await?;
    }
    Ok(())
}
