//! smol's parts on one thread: the local executor in its leaked form, and async-io's reactor, driven by the
//! thread that runs the executor.

use std::net::{TcpListener, TcpStream, UdpSocket};

use async_executor::{LocalExecutor, StaticLocalExecutor};
use async_io::{Async, block_on};
use futures_lite::io::{AsyncReadExt, AsyncWriteExt};

use super::Server;

pub(super) const SERVER: Server = Server { peer: "smol", tcp, udp };

fn tcp(listener: TcpListener, buffer: usize) {
    let executor: &'static StaticLocalExecutor = LocalExecutor::new().leak();
    block_on(executor.run(async move {
        let listener = Async::new_nonblocking(listener).expect("smol takes the listener");
        loop {
            let (stream, _) = listener.accept().await.expect("a connection is accepted");
            executor.spawn(echo(stream, buffer)).detach();
        }
    }))
}

async fn echo(mut stream: Async<TcpStream>, buffer: usize) {
    let _ = stream.get_ref().set_nodelay(true);
    let mut buffer = vec![0; buffer];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        if stream.write_all(&buffer[..count]).await.is_err() {
            break;
        }
    }
}

fn udp(socket: UdpSocket, buffer: usize) {
    let executor: &'static StaticLocalExecutor = LocalExecutor::new().leak();
    let task = executor.spawn(async move {
        let socket = Async::new_nonblocking(socket).expect("smol takes the socket");
        let mut buffer = vec![0; buffer];
        loop {
            let (count, client) = socket.recv_from(&mut buffer).await.expect("a datagram is received");
            socket.send_to(&buffer[..count], client).await.expect("a datagram is sent");
        }
    });
    block_on(executor.run(task))
}
