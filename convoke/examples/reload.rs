//! A server that reloads its configuration on SIGHUP, without closing a connection, and drains on SIGTERM or Ctrl-C. Without
//! an address it plays its own client, and sends itself the signal.
//!
//! ```text
//! cargo run --release --example reload                               # plays by itself
//! cargo run --release --example reload -- 127.0.0.1:7000 greeting    # says what is in the file `greeting`
//! ```

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::signal::{Signal, raise, signals};

#[convoke::main(contexts = 1)]
async fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(file)) = (arguments.next(), arguments.next()) else {
        play().await?.iter().for_each(|said| println!("  the server said: {said}"));
        return Ok(());
    };
    let listener = TcpListener::bind(address).await?;
    let process = std::process::id();
    println!("listening at {}; `kill -HUP {process}` has it read {file} again", listener.local_addr()?);
    serve(listener, move || std::fs::read_to_string(&file).map(|text| text.trim().to_owned())).await
}

/// Sends the configuration to each client, as often as it asks, until the server is asked to stop.
pub async fn serve<L>(listener: TcpListener, load: L) -> io::Result<()>
where
    L: Fn() -> io::Result<String> + Send + 'static,
{
    // Signals count from here on, even before a task waits for one.
    let mut reloads = signals([Signal::HANGUP])?;
    let configured = Arc::new(Mutex::new(load()?));
    let current = configured.clone();
    scope(async |s| {
        s.named("reloads").spawn(async move {
            loop {
                reloads.next().await;
                match load() {
                    Ok(new) => *current.lock().unwrap() = new,
                    Err(error) => eprintln!("  the old configuration stays: {error}"),
                }
            }
        });
        loop {
            let (client, from) = listener.accept().await?;
            let configured = configured.clone();
            s.named(format!("client {from}")).spawn(async move {
                if let Err(error) = answer(client, &configured).await {
                    eprintln!("  {from}: {error}"); // A client's trouble is not the server's.
                }
            });
        }
    })
    .await
}

async fn answer(client: TcpStream, configured: &Mutex<String>) -> io::Result<()> {
    while client.read(&mut [0]).await? > 0 {
        let line = configured.lock().unwrap().clone() + "\n";
        shield(client.write_all(line.as_bytes())).await?; // Who has asked is answered, also by a server that ends.
    }
    Ok(())
}

/// Plays a client that asks before and after a reload. Returns the answers.
pub async fn play() -> io::Result<[String; 2]> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = listener.local_addr()?;
    let version = AtomicU32::new(1);
    let load = move || Ok(format!("configuration {}", version.fetch_add(1, Ordering::Relaxed)));
    scope(async |s| {
        // Dropping the handle asks the server to stop, and the scope waits for it.
        let _serving = s.named("server").spawn_future(serve(listener, load));
        let client = TcpStream::connect(server).await?;
        let before = ask(&client).await?;
        raise(Signal::HANGUP)?;
        loop {
            let now = ask(&client).await?;
            if now != before {
                return Ok([before, now]);
            }
        }
    })
    .await
}

async fn ask(server: &TcpStream) -> io::Result<String> {
    server.write_all(b"?").await?;
    let (mut line, mut byte) = (Vec::new(), [0]);
    loop {
        server.read_exact(&mut byte).await?;
        if byte == *b"\n" {
            return Ok(String::from_utf8_lossy(&line).into_owned());
        }
        line.extend(byte);
    }
}
