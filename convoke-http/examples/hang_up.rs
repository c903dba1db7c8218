//! A client hangs up while its request is answered. Its handler is asked to stop, and the transaction that it has open is rolled back:
//! the rollback is awaited, although nobody waits for the answer any more.
//!
//! ```text
//! cargo run --release -p convoke-http --example hang_up
//! ```

use std::io;
use std::sync::Arc;
use std::time::Duration;

use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::sync::{Event, mpsc};
use convoke_http::{RequestBody, serve};
use http::{Request, Response};

/// A transaction that tells its log how it has ended.
struct Transaction(mpsc::Sender<String>);

impl AsyncClose for Transaction {
    type Error = Never;

    async fn close(self, exit: Exit) -> Result<(), Never> {
        let word = if exit.is_clean() { "COMMIT" } else { "ROLLBACK" };
        sleep(Duration::from_millis(20)).await; // A round trip to the database.
        let _ = self.0.send(format!("{word}: the body {exit}")).await;
        Ok(())
    }
}

/// Works in a transaction for longer than the client is patient.
async fn order(log: mpsc::Sender<String>, begun: Arc<Event>) -> io::Result<Response<String>> {
    using(Transaction(log), async |_transaction| {
        begun.set();
        sleep(Duration::from_secs(3600)).await;
        Ok(Response::new("ordered\n".to_owned()))
    })
    .await
}

#[convoke::main]
async fn main() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let ((log, mut lines), begun) = (mpsc::channel(8), Arc::new(Event::new()));
    let begins = begun.clone();
    let server = serve(listener, move |_: Request<RequestBody>| order(log.clone(), begins.clone()));
    let client = async {
        let stream = TcpStream::connect(address).await?;
        stream.write_all(b"POST /order HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n").await?;
        begun.wait().await;
        println!("the client hangs up");
        drop(stream);
        Ok::<_, io::Error>(lines.recv().await.unwrap_or_default())
    };
    // The race is won by the client: the server is asked to stop, and awaited.
    let line = race((async { server.await.map(|()| String::new()) }, client)).await?;
    println!("{line}");
    assert!(line.starts_with("ROLLBACK: the body was stopped"), "{line}");
    Ok(())
}
