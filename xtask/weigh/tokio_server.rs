//! The server of README.md, written for tokio: it stops on the same signals, finishes open connections and reports
//! clients that fail or panic. `cargo xtask weigh` builds it.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

async fn echo(mut client: TcpStream, mut stop: watch::Receiver<bool>) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        let length = tokio::select! {
            read = client.read(&mut buffer) => read?,
            _ = stop.changed() => return Ok(()),
        };
        if length == 0 {
            return Ok(());
        }
        client.write_all(&buffer[..length]).await?;
    }
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:7000").await?;
    let (stop, stopped) = watch::channel(false);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (client, from) = accepted?;
                let stopped = stopped.clone();
                clients.spawn(async move { (from, echo(client, stopped).await) });
            }
            Some(ended) = clients.join_next() => report(ended),
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
        }
    }
    _ = stop.send(true);
    while let Some(ended) = clients.join_next().await {
        report(ended);
    }
    Ok(())
}

fn report(ended: Result<(std::net::SocketAddr, io::Result<()>), tokio::task::JoinError>) {
    match ended {
        Ok((_, Ok(()))) => {}
        Ok((from, Err(error))) => eprintln!("{from}: {error}"),
        Err(error) => eprintln!("{error}"),
    }
}
