//! A server with connections that have changed their protocol, as WebSockets have, and would stay open for ever. When it is asked to
//! stop they hear of it at once and say good-bye, a request that was begun is answered, and the drain has ended long before its deadline.
//!
//! ```text
//! cargo run --release -p convoke-http --example upgrades_drain
//! ```

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use convoke::io::{read_exact, write_all};
use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::sync::Semaphore;
use convoke_http::{RequestBody, Upgraded, serve, upgrade};
use http::header::{CONNECTION, UPGRADE};
use http::{Request, Response, StatusCode};

/// Clients with an upgraded connection.
const UPGRADES: usize = 20;
/// Deadline of the drain.
const GRACE: Duration = Duration::from_secs(10);
/// Time that the slow request takes after it was begun.
const SLOW: Duration = Duration::from_millis(100);

/// A stream of the new protocol. However its use ends, the peer is told.
struct Polite(Upgraded);

impl AsyncClose for Polite {
    type Error = io::Error;

    async fn close(mut self, exit: Exit) -> io::Result<()> {
        write_all(&mut self.0, format!("good-bye, the body {exit}").as_bytes()).await
    }
}

/// Returns each byte, until the client goes or the server stops.
async fn echo(stream: Upgraded, begun: Arc<Semaphore>) -> io::Result<()> {
    begun.add_permits(1);
    using(Polite(stream), async |mut stream| {
        let mut byte = [0];
        while read_exact(&mut stream.0, &mut byte).await.is_ok() {
            write_all(&mut stream.0, &byte).await?;
        }
        Ok(())
    })
    .await
}

async fn handle(mut request: Request<RequestBody>, begun: Arc<Semaphore>) -> io::Result<Response<String>> {
    let begins = begun.clone();
    if upgrade(&mut request, |stream| echo(stream, begins)).is_err() {
        begun.add_permits(1);
        sleep(SLOW).await;
        return Ok(Response::new("slow, and answered".to_owned()));
    }
    let answer = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
    answer.header(CONNECTION, "upgrade").header(UPGRADE, "echo").body(String::new()).map_err(io::Error::other)
}

/// Sends a request, and returns all that arrives until the server closes the connection.
async fn ask(address: SocketAddr, header: &str) -> io::Result<String> {
    let stream = TcpStream::connect(address).await?;
    stream.write_all(format!("GET / HTTP/1.1\r\nhost: localhost\r\n{header}\r\n").as_bytes()).await?;
    let mut heard = Vec::new();
    while stream.read_buf(&mut heard).await? > 0 {}
    Ok(String::from_utf8_lossy(&heard).into_owned())
}

#[convoke::main]
async fn main() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let begun = Arc::new(Semaphore::new(0));
    let begins = begun.clone();
    let server = serve(listener, move |request| handle(request, begins.clone())).grace(GRACE);
    let (heard, took) = scope(async |s| {
        let server = s.named("server").spawn_future(server.into_future());
        let upgraded = "connection: upgrade\r\nupgrade: echo\r\n";
        let clients: Vec<_> = (0..UPGRADES).map(|_| s.spawn_future(ask(address, upgraded))).collect();
        let slow = s.spawn_future(ask(address, ""));
        drop(begun.acquire_many(UPGRADES + 1).await);
        println!(
            "{UPGRADES} connections are upgraded, one request is under way; the server is asked to stop"
        );
        let asked = Instant::now();
        server.request_stop(StopReason::Shutdown);
        let _ = catch_stopped(server).await;
        let took = asked.elapsed();
        let mut heard = vec![slow.await?];
        for client in clients {
            heard.push(client.await?);
        }
        Ok::<_, io::Error>((heard, took))
    })
    .await?;
    let last = |heard: &String| heard.lines().last().unwrap_or_default().to_owned();
    println!("the request: {}", last(&heard[0]));
    println!("each upgraded connection: {}", last(&heard[1]));
    println!("drained after {took:.0?}, of a deadline of {GRACE:?}");
    assert!(heard[0].ends_with("slow, and answered"), "{heard:?}");
    assert!(
        heard[1..].iter().all(|it| it.ends_with("good-bye, the body was stopped (shutting down)")),
        "{heard:?}"
    );
    assert!(took < GRACE / 2, "{took:?}");
    Ok(())
}
