//! An echo server that drains on Ctrl-C: it accepts no more connections, echoes what clients have already sent, and only then does the
//! program end. Without an address it plays its own clients, and then presses its own Ctrl-C.
//!
//! ```text
//! cargo run --release --example echo                      # plays by itself
//! cargo run --release --example echo -- 127.0.0.1:7000    # try it: nc 127.0.0.1 7000
//! ```

use std::io;
use std::net::SocketAddr;

use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::task::map_concurrent;

#[convoke::main(contexts = 1)]
async fn main() -> io::Result<()> {
    let Some(address) = std::env::args().nth(1) else {
        let heard = play(TcpListener::bind("127.0.0.1:0").await?, 8).await?;
        heard.iter().for_each(|words| println!("  heard: {words}"));
        println!("  the server was asked to stop, and every conversation has ended");
        return Ok(());
    };
    let listener = TcpListener::bind(address).await?;
    println!("listening at {}, Ctrl-C ends it", listener.local_addr()?);
    serve(listener).await
}

/// Accepts connections until it is asked to stop, or the listener fails.
pub async fn serve(listener: TcpListener) -> io::Result<()> {
    scope(async |clients| {
        loop {
            let (client, from) = listener.accept().await?;
            clients.named(format!("client {from}")).spawn(async move {
                if let Err(error) = converse(client).await {
                    eprintln!("  {from}: {error}"); // A client's trouble is not the server's.
                }
            });
        }
    })
    .await
}

/// Echoes what a client sends, until the client closes its side.
async fn converse(client: TcpStream) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        let length = client.read(&mut buffer).await?; // A stop is heard here, between two things that were said,
        if length == 0 {
            return Ok(());
        }
        shield(client.write_all(&buffer[..length])).await?; // and not here: what was taken is given back.
    }
}

/// Plays clients that all send at the same time; when they have the echo, the server is asked to stop.
pub async fn play(listener: TcpListener, clients: usize) -> io::Result<Vec<String>> {
    let server = listener.local_addr()?;
    scope(async |s| {
        // Dropping the handle asks the server to stop, and the scope waits for it.
        let _serving = s.named("server").spawn_future(serve(listener));
        let talks = map_concurrent(0..clients, clients, move |n| talk(server, n)).in_order();
        talks.try_collect().await
    })
    .await
}

async fn talk(server: SocketAddr, n: usize) -> io::Result<String> {
    let stream = TcpStream::connect(server).await?;
    let words = format!("hello from client {n}");
    stream.write_all(words.as_bytes()).await?;
    let mut heard = vec![0; words.len()];
    stream.read_exact(&mut heard).await?;
    Ok(String::from_utf8_lossy(&heard).into_owned())
}
