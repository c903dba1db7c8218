//! tokio's single-threaded runtime, with its I/O driver only.

use std::net;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::runtime::{Builder, Runtime};

use super::Server;

pub(super) const SERVER: Server = Server { peer: "tokio", tcp, udp };

fn tcp(listener: net::TcpListener, buffer: usize) {
    runtime().block_on(async move {
        let listener = TcpListener::from_std(listener).expect("tokio takes the listener");
        loop {
            let (stream, _) = listener.accept().await.expect("a connection is accepted");
            tokio::spawn(echo(stream, buffer));
        }
    });
}

async fn echo(mut stream: TcpStream, buffer: usize) {
    let _ = stream.set_nodelay(true);
    let mut buffer = vec![0; buffer];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        if stream.write_all(&buffer[..count]).await.is_err() {
            break;
        }
    }
}

fn udp(socket: net::UdpSocket, buffer: usize) {
    let runtime = runtime();
    let task = async move {
        let socket = UdpSocket::from_std(socket).expect("tokio takes the socket");
        let mut buffer = vec![0; buffer];
        loop {
            let (count, client) = socket.recv_from(&mut buffer).await.expect("a datagram is received");
            socket.send_to(&buffer[..count], client).await.expect("a datagram is sent");
        }
    };
    // As a task, because a future that blocks a thread has a more expensive waker.
    let task = runtime.spawn(task);
    runtime.block_on(task).expect("the server does not panic");
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_io().build().expect("a tokio run loop starts")
}
