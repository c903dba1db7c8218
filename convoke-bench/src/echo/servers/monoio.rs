//! monoio with its poll driver, which uses epoll. Buffers are passed to the calls and come back with their
//! results.

use std::net;

use monoio::buf::IoBuf;
use monoio::io::{AsyncReadRent, AsyncWriteRentExt};
use monoio::net::udp::UdpSocket;
use monoio::net::{TcpListener, TcpStream};
use monoio::{LegacyDriver, Runtime, RuntimeBuilder};

use super::Server;

pub(super) const SERVER: Server = Server { peer: "monoio", tcp, udp };

fn tcp(listener: net::TcpListener, buffer: usize) {
    runtime().block_on(async move {
        let listener = TcpListener::from_std(listener).expect("monoio takes the listener");
        loop {
            let (stream, _) = listener.accept().await.expect("a connection is accepted");
            monoio::spawn(echo(stream, buffer));
        }
    })
}

async fn echo(mut stream: TcpStream, buffer: usize) {
    let _ = stream.set_nodelay(true);
    let mut buffer = Vec::with_capacity(buffer);
    loop {
        let (read, filled) = stream.read(buffer).await;
        let Ok(count @ 1..) = read else { break };
        let (written, slice) = stream.write_all(filled.slice(..count)).await;
        if written.is_err() {
            break;
        }
        buffer = slice.into_inner();
    }
}

fn udp(socket: net::UdpSocket, buffer: usize) {
    runtime().block_on(async move {
        let socket = UdpSocket::from_std(socket).expect("monoio takes the socket");
        let mut buffer = Vec::with_capacity(buffer);
        loop {
            let (received, filled) = socket.recv_from(buffer).await;
            let (count, client) = received.expect("a datagram is received");
            let (sent, slice) = socket.send_to(filled.slice(..count), client).await;
            sent.expect("a datagram is sent");
            buffer = slice.into_inner();
        }
    })
}

fn runtime() -> Runtime<LegacyDriver> {
    RuntimeBuilder::<LegacyDriver>::new().build().expect("monoio starts")
}
