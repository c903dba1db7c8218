//! P3149R1 §4.4: the listener of a server. Connections are handled beside the loop
//! that accepts, and all are handled before it returns how many there were.
//!
//! There is no flag to check and no `join` to forget. A stop ends the `accept`, and
//! is caught; the scope ends when its children have, which are shielded from the
//! stop.

use std::io;
use std::net::SocketAddr;

use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;

async fn handle_connection(connection: TcpStream) -> io::Result<()> {
    connection.write_all(b"hello").await
}

async fn listener(listen_sock: TcpListener) -> io::Result<usize> {
    scope(async |s| {
        let mut count = 0;
        while let Ok(accepted) = catch_stopped(listen_sock.accept()).await {
            let (connection, _from) = accepted?;
            count += 1;
            s.spawn(shield(handle_connection(connection)));
        }
        Ok(count)
    })
    .await
}

async fn client(address: SocketAddr) -> io::Result<usize> {
    let mut said = [0; 5];
    TcpStream::connect(address).await?.read_exact(&mut said).await?;
    Ok(said.len())
}

async fn server_and_clients() -> io::Result<String> {
    let listen_sock = TcpListener::bind("127.0.0.1:0").await?;
    let address = listen_sock.local_addr()?;
    scope(async |s| {
        let server = s.spawn_future(listener(listen_sock));
        let (one, other) = try_join((client(address), client(address))).await?;
        server.request_stop(StopReason::Shutdown);
        Ok(format!("{} connections, {} bytes", server.await?, one + other))
    })
    .await
}

pub(crate) fn run() -> String {
    let ioc = convoke::driver::io_context().unwrap();
    ioc.block_on(server_and_clients()).unwrap().unwrap()
}
