//! Servers that compute for each request, on one core and on two.
//!
//! An echo alone would not show it here: the load needs a core too. With this much work for each request it
//! needs a twentieth of one.

use std::hint::black_box;
use std::net;

use convoke::net::{TcpStream, serve};
use convoke::runtime::Runtime;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::scenario::CONVOKE;

/// A server with the number of its threads.
#[derive(Clone, Copy)]
pub(in crate::echo) struct CoresServer {
    pub(in crate::echo) peer: &'static str,
    pub(in crate::echo) cores: usize,
    pub(in crate::echo) serve: fn(net::TcpListener, usize, usize),
}

pub(super) const SERVERS: [CoresServer; 4] = [
    CoresServer { peer: CONVOKE, cores: 2, serve: on_convoke },
    CoresServer { peer: "convoke_1_core", cores: 1, serve: on_convoke },
    CoresServer { peer: "tokio", cores: 2, serve: on_tokio },
    CoresServer { peer: "tokio_1_core", cores: 1, serve: on_tokio },
];

/// The rounds of computing for one request: about a tenth of a millisecond.
const ROUNDS: u64 = 50_000;

/// Computes, and changes no byte of the message, so that the load finds its echo.
pub(super) fn compute(message: &[u8]) {
    let mut sum: u64 = message.iter().map(|byte| u64::from(*byte)).sum();
    for round in 0..ROUNDS {
        sum = black_box(sum).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ round;
    }
    black_box(sum);
}

fn on_convoke(listener: net::TcpListener, buffer: usize, cores: usize) {
    let runtime = Runtime::builder().contexts(cores).build().expect("a runtime starts");
    let ended = runtime.block_on(async move {
        let listener = convoke::net::TcpListener::from_std(listener)?;
        serve(listener, move |stream: TcpStream, _| async move {
            stream.set_nodelay(true)?;
            let mut buffer = vec![0; buffer];
            while let count @ 1.. = stream.read(&mut buffer).await? {
                compute(&buffer[..count]);
                stream.write_all(&buffer[..count]).await?;
            }
            std::io::Result::Ok(())
        })
        .await
    });
    panic!("the server does not end, but it did: {ended:?}");
}

fn on_tokio(listener: net::TcpListener, buffer: usize, cores: usize) {
    let mut builder = match cores {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.worker_threads(cores).enable_io().build().expect("a tokio runtime starts");
    let accepts = async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("tokio takes the listener");
        loop {
            let (stream, _) = listener.accept().await.expect("a connection is accepted");
            tokio::spawn(serve_on_tokio(stream, buffer));
        }
    };
    runtime.block_on(async { tokio::spawn(accepts).await.expect("the server does not panic") });
}

async fn serve_on_tokio(mut stream: tokio::net::TcpStream, buffer: usize) {
    let _ = stream.set_nodelay(true);
    let mut buffer = vec![0; buffer];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        compute(&buffer[..count]);
        if stream.write_all(&buffer[..count]).await.is_err() {
            break;
        }
    }
}
