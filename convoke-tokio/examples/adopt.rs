//! A tokio program with one handler on Convoke: its children end with it, and a client that hangs up leaves no
//! transaction open.
//!
//! `cargo run -p convoke-tokio --example adopt`

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use convoke::prelude::*;
use convoke::scope::scope_on;
use convoke_tokio::{Workers, finish, run};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A transaction that is committed or rolled back on every exit.
struct Transaction(&'static str);

/// Transactions that were rolled back.
static ROLLED_BACK: AtomicUsize = AtomicUsize::new(0);

impl AsyncClose for Transaction {
    type Error = Never;

    async fn close(self, exit: Exit) -> Result<(), Never> {
        tokio::time::sleep(Duration::from_millis(2)).await; // The database takes its time, and gets it.
        let word = if exit.is_clean() { "COMMIT" } else { "ROLLBACK" };
        println!("{:>8}: {word}, the body {exit}", self.0);
        ROLLED_BACK.fetch_add(usize::from(!exit.is_clean()), Ordering::Release);
        Ok(())
    }
}

/// The handler: what it opens is closed, and what it starts has ended, when its future has ended, or was dropped.
async fn order(name: &'static str, takes: Duration, workers: Workers) -> Result<u64, Stopped> {
    run(async move {
        using(Transaction(name), async |_transaction| {
            scope(async |s| {
                // Beside each other inside this tokio task: one waits by tokio's timer, one by Convoke's.
                let stock = s.named("stock").spawn_future(async move {
                    tokio::time::sleep(takes).await;
                    20
                });
                let price = s.named("price").spawn_future(async move {
                    sleep(takes).await;
                    21
                });
                // In parallel on tokio's worker threads.
                let taxes = scope_on(&workers, async |w| w.spawn_future(async { (1..2).sum::<u64>() }).await);
                taxes.await + stock.await + price.await
            })
            .await
        })
        .await
    })
    .named(name)
    .await
}

/// A server of tokio's, unchanged: a task for each client. When the client hangs up, the handler is dropped.
async fn serve(listener: TcpListener, workers: Workers) -> std::io::Result<()> {
    loop {
        let (mut client, _) = listener.accept().await?;
        let workers = workers.clone();
        tokio::spawn(async move {
            let mut patience = [0];
            client.read_exact(&mut patience).await?;
            let (name, takes) = match patience[0] {
                b'q' => ("quick", Duration::from_millis(1)),
                _ => ("slow", Duration::from_secs(3600)),
            };
            tokio::select! {
                sum = order(name, takes, workers) => client.write_all(format!("{sum:?}").as_bytes()).await,
                _ = client.read(&mut patience) => {
                    println!("{name:>8}: the client hung up");
                    Ok(())
                }
            }
        });
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(serve(listener, Workers::new()));

    let mut quick = TcpStream::connect(address).await?;
    quick.write_all(b"q").await?;
    let mut answer = String::new();
    quick.read_to_string(&mut answer).await?;
    println!("{:>8}: {answer}", "quick");

    let mut slow = TcpStream::connect(address).await?;
    slow.write_all(b"s").await?;
    while convoke::inspect::tree().find("price").is_none() {
        tokio::task::yield_now().await;
    }
    println!("{}", convoke::inspect::tree());
    drop(slow);

    // Before the runtime goes: nothing of Convoke's is left behind.
    while convoke::inspect::tree().find("price").is_some() {
        tokio::task::yield_now().await;
    }
    finish(Duration::from_secs(10)).await.map_err(std::io::Error::other)?;
    println!("finished: {} tasks are left", convoke::inspect::tree().len());
    assert_eq!(ROLLED_BACK.load(Ordering::Acquire), 1, "that of the client that hung up");
    server.abort();
    Ok(())
}
