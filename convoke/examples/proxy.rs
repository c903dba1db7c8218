//! A TCP proxy: copies bytes both ways, with a bound on the number of connections, and prints for each how many bytes went each way.
//! Without addresses it plays a client and a server at its two ends.
//!
//! ```text
//! cargo run --release --example proxy                                       # plays by itself
//! cargo run --release --example proxy -- 127.0.0.1:7001 example.org:80
//! ```

use std::io;

use convoke::io::{Progress, copy_bidirectional};
use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::scope::Bound;
use convoke::task::map_concurrent;

/// Maximum number of connections. Further clients wait in the backlog: the proxy accepts no connection that it cannot serve.
const CONNECTIONS: usize = 1000;

#[convoke::main(contexts = 1)]
async fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(at), Some(to)) = (arguments.next(), arguments.next()) else {
        let answers = play(6).await?;
        println!("  {} answers came back through the proxy", answers.len());
        return Ok(());
    };
    let listener = TcpListener::bind(at).await?;
    println!("passing {} on to {to}, Ctrl-C ends it", listener.local_addr()?);
    pass_on(listener, to).await
}

/// Passes every connection on, until it is asked to stop.
pub async fn pass_on(listener: TcpListener, to: String) -> io::Result<()> {
    let bound = Bound::new(CONNECTIONS);
    scope(async |s| {
        loop {
            let permit = bound.take(1).await; // Before anything is accepted.
            let (client, from) = listener.accept().await?;
            let to = to.clone();
            s.named(format!("{from}")).spawn(async move {
                let _permit = permit;
                connection(client, &to, &from.to_string()).await;
            });
        }
    })
    .await
}

/// Serves one connection. However it ends, by itself, by an error or by a stop, it reports how many bytes were copied.
async fn connection(mut client: TcpStream, to: &str, from: &str) {
    let (there, back) = (Progress::new(), Progress::new());
    let ended = catch_stopped(async {
        let mut server = TcpStream::connect(to).await?;
        copy_bidirectional(&mut client, &mut server).progress(&there, &back).await
    });
    let ended = match ended.await {
        Ok(Ok(_)) => "ended".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(stopped) => stopped.to_string(),
    };
    println!("  {from:<22} {:>8} bytes there {:>8} bytes back   {ended}", there.bytes(), back.bytes());
}

/// A server that answers each client once, a proxy before it, and clients before that.
pub async fn play(clients: usize) -> io::Result<Vec<String>> {
    let (behind, front) = (TcpListener::bind("127.0.0.1:0").await?, TcpListener::bind("127.0.0.1:0").await?);
    let (server, proxy) = (behind.local_addr()?, front.local_addr()?);
    scope(async |s| {
        let _answers = s.named("server").spawn_future(answer(behind));
        let _proxy = s.named("proxy").spawn_future(pass_on(front, server.to_string()));
        map_concurrent(0..clients, clients, move |n| ask(proxy, n)).in_order().try_collect().await
    })
    .await
}

async fn answer(listener: TcpListener) -> io::Result<()> {
    scope(async |s| {
        loop {
            let (client, _) = listener.accept().await?;
            s.spawn(async move {
                let mut question = [0; 64];
                let length = client.read(&mut question).await?;
                client.write_all(format!("you said {length} bytes").as_bytes()).await
            });
        }
    })
    .await
}

async fn ask(proxy: std::net::SocketAddr, n: usize) -> io::Result<String> {
    let stream = TcpStream::connect(proxy).await?;
    stream.write_all(&vec![b'?'; n + 1]).await?;
    let mut answer = Vec::new();
    let mut buffer = [0; 64];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(String::from_utf8_lossy(&answer).into_owned()),
            length => answer.extend_from_slice(&buffer[..length]),
        }
    }
}
