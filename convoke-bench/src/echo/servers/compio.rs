//! compio with its polling driver, which uses epoll here. Buffers are passed to the calls and come back with
//! their results.

use std::net;

use compio::BufResult;
use compio::buf::{IntoInner, IoBuf};
use compio::io::{AsyncRead, AsyncWriteExt};
use compio::net::{TcpListener, TcpStream, UdpSocket};
use compio::runtime::Runtime;

use super::Server;

pub(super) const SERVER: Server = Server { peer: "compio", tcp, udp };

fn tcp(listener: net::TcpListener, buffer: usize) {
    runtime().block_on(async move {
        let listener = TcpListener::from_std(listener).expect("compio takes the listener");
        loop {
            let (stream, _) = listener.accept().await.expect("a connection is accepted");
            compio::runtime::spawn(echo(stream, buffer)).detach();
        }
    })
}

async fn echo(mut stream: TcpStream, buffer: usize) {
    let _ = stream.set_nodelay(true);
    let mut buffer = Vec::with_capacity(buffer);
    loop {
        buffer.clear();
        let BufResult(read, filled) = stream.read(buffer).await;
        let Ok(count @ 1..) = read else { break };
        let BufResult(written, slice) = stream.write_all(filled.slice(..count)).await;
        if written.is_err() {
            break;
        }
        buffer = slice.into_inner();
    }
}

fn udp(socket: net::UdpSocket, buffer: usize) {
    runtime().block_on(async move {
        let socket = UdpSocket::from_std(socket).expect("compio takes the socket");
        let mut buffer = Vec::with_capacity(buffer);
        loop {
            buffer.clear();
            let BufResult(received, filled) = socket.recv_from(buffer).await;
            let (count, client) = received.expect("a datagram is received");
            let BufResult(sent, slice) = socket.send_to(filled.slice(..count), client).await;
            sent.expect("a datagram is sent");
            buffer = slice.into_inner();
        }
    })
}

fn runtime() -> Runtime {
    Runtime::new().expect("compio starts")
}
