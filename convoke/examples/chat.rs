//! A chat server: a line that one guest sends is sent to all others. No line is lost, and queues are bounded: the server waits a
//! moment for a guest that does not read, and then disconnects it. Without an address it plays three guests.
//!
//! ```text
//! cargo run --release --example chat                      # plays by itself
//! cargo run --release --example chat -- 127.0.0.1:7002    # try it: nc 127.0.0.1 7002, twice
//! ```

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::sync::lossless_broadcast::{self, Receiver, Sender};

/// Maximum number of lines that wait for the slowest guest.
const LINES: usize = 64;
/// Maximum length of a line. A guest that sends a longer one is disconnected.
const LINE_BYTES: usize = 1024;
/// Maximum time that a guest may take to read a line.
const PATIENCE: Duration = Duration::from_secs(1);

#[convoke::main(contexts = 1)]
async fn main() -> io::Result<()> {
    let Some(address) = std::env::args().nth(1) else {
        for line in play(TcpListener::bind("127.0.0.1:0").await?).await? {
            println!("  the last guest hears: {line}");
        }
        return Ok(());
    };
    let listener = TcpListener::bind(address).await?;
    println!("the room is open at {}, Ctrl-C ends it", listener.local_addr()?);
    room(listener).await
}

#[derive(Clone, Debug)]
struct Line {
    from: SocketAddr,
    words: Arc<str>,
}

/// Accepts guests until it is asked to stop.
pub async fn room(listener: TcpListener) -> io::Result<()> {
    let (says, hears) = lossless_broadcast::channel(LINES);
    drop(hears);
    scope(async |guests| {
        loop {
            let (stream, from) = listener.accept().await?;
            let (says, hears) = (says.clone(), says.subscribe());
            guests.named(format!("guest {from}")).spawn(async move {
                guest(&stream, from, says, hears).await;
            });
        }
    })
    .await
}

/// Serves a guest: reads and writes at the same time; when either ends, so does the other.
async fn guest(stream: &TcpStream, from: SocketAddr, says: Sender<Line>, hears: Receiver<Line>) {
    if let Err(error) = race((speak(stream, from, says), listen(stream, from, hears))).await {
        eprintln!("  {from}: {error}");
    }
}

async fn speak(stream: &TcpStream, from: SocketAddr, says: Sender<Line>) -> io::Result<()> {
    let mut begun: Vec<u8> = Vec::new();
    loop {
        let heard = stream.read_lease().await?;
        if heard.is_empty() {
            return Ok(());
        }
        for part in heard.split_inclusive(|byte| *byte == b'\n') {
            begun.extend_from_slice(part);
            if begun.ends_with(b"\n") {
                let words = String::from_utf8_lossy(&begun).trim_end().into();
                begun.clear();
                _ = says.send(Line { from, words }).await; // If nobody listens, nobody does.
            } else if begun.len() > LINE_BYTES {
                return Err(io::Error::other(format!("a line of more than {LINE_BYTES} bytes")));
            }
        }
    }
}

async fn listen(stream: &TcpStream, me: SocketAddr, mut hears: Receiver<Line>) -> io::Result<()> {
    while let Some(line) = hears.recv().await {
        if line.from == me {
            continue;
        }
        let text = format!("[{}] {}\n", line.from.port(), line.words);
        let written = timeout(PATIENCE, stream.write_all(text.as_bytes())).await;
        written.map_err(|_| io::Error::other("does not listen"))??;
    }
    Ok(())
}

/// Plays three guests, two of which send lines. Returns the lines that the third receives.
pub async fn play(listener: TcpListener) -> io::Result<Vec<String>> {
    let address = listener.local_addr()?;
    scope(async |s| {
        let _room = s.named("room").spawn_future(room(listener));
        let mut guests = Vec::new();
        for _ in 0..3 {
            guests.push(TcpStream::connect(address).await?);
        }
        let mut heard = Vec::new();
        for (n, words) in [(0, "is anybody here?"), (1, "I am"), (0, "good")] {
            // A line that is sent before all guests are connected may be missed: it is repeated until it is received.
            loop {
                guests[n].write_all(format!("{words}\n").as_bytes()).await?;
                if let Ok(line) = timeout(Duration::from_millis(200), line(&guests[2])).await {
                    heard.push(line?);
                    break;
                }
            }
        }
        Ok(heard)
    })
    .await
}

async fn line(stream: &TcpStream) -> io::Result<String> {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).await?;
        line.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}
