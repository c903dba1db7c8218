//! The server of README.md, written for tokio as a careful program would be. `cargo xtask weigh` builds it.
//!
//! It does what `serve` and `#[convoke::main]` do:
//! - connections run on all cores, at most `CONNECTIONS` at a time;
//! - a connection that fails or panics is reported, and the others go on;
//! - without descriptors or memory the server pauses, and reports that once;
//! - SIGINT and SIGTERM stop it: it accepts no more, an answer that was begun is delivered, connections that take
//!   longer than `DRAIN_GRACE` are cut off, and the exit status is 128 plus the number of the signal;
//! - a signal that comes a second later, or the end of `STOP_GRACE`, ends the process at once with status 70;
//! - a connection is closed with a lingering close, which has the limits of `Linger`.
//!
//! It does not do what a program for tokio cannot do in a few lines: it has one listener and not one on each
//! core, it does not name the tasks that still run and where they wait, and it awaits no clean-up of what is cut
//! off.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

const CONNECTIONS: usize = 16_384;
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const DRAIN_GRACE: Duration = Duration::from_secs(10);
const STOP_GRACE: Duration = Duration::from_secs(30);
const SECOND_SIGNAL_AFTER: Duration = Duration::from_secs(1);
const LINGER_TIME: Duration = Duration::from_secs(10);
const LINGER_IDLE: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 16 << 20;
const ENDED_HARD: i32 = 70;

type Ended = Result<(SocketAddr, io::Result<()>), JoinError>;

#[tokio::main]
async fn main() -> io::Result<ExitCode> {
    let mut signals = Signals::new()?;
    let (stop, stopped) = watch::channel(false);
    let server = tokio::spawn(serve("127.0.0.1:7000", stopped));
    tokio::pin!(server);
    let number = tokio::select! {
        ended = &mut server => return ended?.map(|()| ExitCode::SUCCESS),
        number = signals.next() => number,
    };
    _ = stop.send(true);
    let asked = Instant::now();
    let why = loop {
        tokio::select! {
            ended = &mut server => {
                ended??;
                eprintln!("the program was stopped by signal {number}");
                return Ok(ExitCode::from(128 + number));
            }
            // An earlier one belongs to the first.
            second = signals.next() => if asked.elapsed() >= SECOND_SIGNAL_AFTER {
                break format!("signal {second} came after signal {number}, and not everything had ended");
            },
            () = sleep_until(asked + STOP_GRACE) => {
                break format!("not everything had ended {STOP_GRACE:?} after signal {number}");
            }
        }
    };
    eprintln!("ended hard: {why}");
    std::process::exit(ENDED_HARD)
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => 2,
            _ = self.terminate.recv() => 15,
        }
    }
}

/// Accepts connections until it is asked to stop, then waits for those that are open.
async fn serve(address: &str, mut stopped: watch::Receiver<bool>) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    let mut clients = JoinSet::new();
    let mut out_of_resources = false;
    loop {
        let accept = async {
            // Both can be dropped and lose nothing.
            let permit = permits.clone().acquire_owned().await;
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            accepted = accept => accepted,
            Some(ended) = clients.join_next() => {
                report(ended);
                continue;
            }
            _ = stopped.changed() => break,
        };
        match accepted {
            Ok((client, from)) => {
                out_of_resources = false;
                let stopped = stopped.clone();
                clients.spawn(async move {
                    let _permit = permit;
                    (from, converse(client, stopped).await)
                });
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) if error.raw_os_error().is_some() => {
                if !std::mem::replace(&mut out_of_resources, true) {
                    eprintln!("no connection can be accepted now ({error}); trying again every {ACCEPT_PAUSE:?}");
                }
                tokio::select! {
                    () = sleep(ACCEPT_PAUSE) => {}
                    _ = stopped.changed() => break,
                }
            }
            Err(error) => return Err(error),
        }
    }
    drop(listener);
    let drained = timeout(DRAIN_GRACE, async {
        while let Some(ended) = clients.join_next().await {
            report(ended);
        }
    });
    if drained.await.is_err() {
        eprintln!("{} connections had not ended {DRAIN_GRACE:?} after the stop request", clients.len());
        clients.shutdown().await;
    }
    Ok(())
}

fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
            | ErrorKind::Interrupted
            | ErrorKind::TimedOut
            | ErrorKind::PermissionDenied
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown
    )
}

fn report(ended: Ended) {
    match ended {
        Ok((_, Ok(()))) => {}
        Ok((from, Err(error))) => eprintln!("connection from {from}: {error}"),
        Err(error) => eprintln!("connection: {error}"),
    }
}

/// Runs the handler, then closes the connection so that what was written is delivered.
async fn converse(mut client: TcpStream, stopped: watch::Receiver<bool>) -> io::Result<()> {
    let ended = echo(&mut client, stopped).await;
    // An error means that the connection is gone.
    if client.shutdown().await.is_ok() {
        _ = timeout(LINGER_TIME, discard(&mut client)).await;
    }
    ended
}

async fn discard(client: &mut TcpStream) {
    let mut bytes = 0;
    let mut buffer = [0; 4096];
    while bytes < LINGER_BYTES {
        match timeout(LINGER_IDLE, client.read(&mut buffer)).await {
            Ok(Ok(length @ 1..)) => bytes += length,
            _ => return,
        }
    }
}

async fn echo(client: &mut TcpStream, mut stopped: watch::Receiver<bool>) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        let length = tokio::select! {
            read = client.read(&mut buffer) => read?,
            _ = stopped.changed() => return Ok(()),
        };
        if length == 0 {
            return Ok(());
        }
        client.write_all(&buffer[..length]).await?;
    }
}
