//! Convoke's I/O context of one thread, on the driver that the facade chooses. Connections are children of one scope.

use std::net;

use convoke::driver::io_context;
use convoke::net::{TcpListener, TcpStream, UdpSocket};
use convoke::scope;

use super::Server;
use crate::scenario::CONVOKE;

pub(super) const SERVER: Server = Server { peer: CONVOKE, tcp, udp };

fn tcp(listener: net::TcpListener, buffer: usize) {
    run(async move {
        let listener = TcpListener::from_std(listener).expect("convoke takes the listener");
        scope(async |connections| {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection is accepted");
                connections.spawn(echo(stream, buffer));
            }
        })
        .await
    });
}

async fn echo(stream: TcpStream, buffer: usize) {
    let _ = stream.set_nodelay(true);
    let mut buffer = vec![0; buffer];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        if stream.write_all(&buffer[..count]).await.is_err() {
            break;
        }
    }
}

fn udp(socket: net::UdpSocket, buffer: usize) {
    run(async move {
        let socket = UdpSocket::from_std(socket).expect("convoke takes the socket");
        let mut buffer = vec![0; buffer];
        loop {
            let (count, client) = socket.recv_from(&mut buffer).await.expect("a datagram is received");
            socket.send_to(&buffer[..count], client).await.expect("a datagram is sent");
        }
    });
}

fn run(server: impl Future<Output = ()>) {
    let ended = io_context().expect("an I/O context starts").block_on(server);
    panic!("the server does not end, but it did: {ended:?}");
}
