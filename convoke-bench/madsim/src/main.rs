//! The program of `sim_echo` in madsim: a message of 64 bytes over simulated TCP, one server, clients on nodes of
//! their own. Prints the time for a message, a request or its answer.
//!
//! `RUSTFLAGS="--cfg madsim" cargo run --release --manifest-path convoke-bench/madsim/Cargo.toml -- 100 1000 11`: the
//! number of clients, the messages of each, the samples.

use std::time::{Duration, Instant};

use madsim::net::{TcpListener, TcpStream};
use madsim::runtime::{Handle, Runtime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The size of a message in bytes.
const MESSAGE: usize = 64;

async fn server() {
    let listener = TcpListener::bind("10.0.0.1:7").await.unwrap();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        madsim::task::spawn(async move {
            let mut message = [0; MESSAGE];
            while stream.read_exact(&mut message).await.is_ok() {
                // It sends what was written when it is flushed.
                if stream.write_all(&message).await.is_err() || stream.flush().await.is_err() {
                    break;
                }
            }
        });
    }
}

async fn client(rounds: u64) {
    let mut stream = TcpStream::connect("10.0.0.1:7").await.unwrap();
    let mut message = [0; MESSAGE];
    for _ in 0..rounds {
        stream.write_all(&message).await.unwrap();
        stream.flush().await.unwrap();
        stream.read_exact(&mut message).await.unwrap();
    }
}

async fn run(clients: u64, rounds: u64) {
    let handle = Handle::current();
    handle.create_node().name("server").ip([10, 0, 0, 1].into()).build().spawn(server());
    madsim::time::sleep(Duration::from_secs(1)).await;
    let start = |number: u64| {
        let ip = [10, 1, (number / 200) as u8, (number % 200) as u8 + 1].into();
        handle.create_node().name(format!("client {number}")).ip(ip).build().spawn(client(rounds))
    };
    let all: Vec<_> = (0..clients).map(start).collect();
    for client in all {
        client.await.unwrap();
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|number| number.parse().expect("a number"));
    let mut next = || arguments.next().expect("clients, messages of each, samples");
    let (clients, rounds, samples) = (next(), next(), next());
    let sample = |_| {
        let runtime = Runtime::with_seed_and_config(1, madsim::Config::default());
        let start = Instant::now();
        runtime.block_on(run(clients, rounds));
        start.elapsed().as_nanos() as u64 / (2 * clients * rounds)
    };
    let mut times: Vec<u64> = (0..samples).map(sample).collect();
    times.sort_unstable();
    println!("{clients} clients: {} ns a message (median of {samples})", times[times.len() / 2]);
}
