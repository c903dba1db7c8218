//! The client, and a server that answers anything: heads, bodies, redirects. What is secret does not go to another origin.

use std::io;
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::sim::simulate;
use convoke_http::Client;

use super::{LONG, OTHER, SERVER, head_of, listener, say};

const SECRET: &str = "s3cret";

pub(super) fn target(data: &[u8]) {
    let Some((&size, answer)) = data.split_first() else { return };
    let answer: Arc<[u8]> = answer.into();
    simulate(1, async move {
        let (own, other) = (listener().await?, TcpListener::bind(OTHER).await?);
        let client = Client::builder().redirects(3).total_time(Duration::from_secs(60));
        let body = client.run(async |client| {
            let uri = format!("http://{SERVER}/a/b?c");
            let asked = client.post(uri).header("authorization", SECRET).body("text").send();
            let answered = async { asked.await?.bytes().await };
            let ended = timeout(LONG, answered).await;
            assert!(ended.is_ok(), "the client waits for ever");
            io::Result::Ok(())
        });
        let servers = join((answers(own, answer.clone(), size, true), answers(other, answer, size, false)));
        race((async { servers.await.0 }, body)).await
    })
    .unwrap();
}

/// Answers each connection with the same bytes.
async fn answers(listener: TcpListener, answer: Arc<[u8]>, size: u8, may_know: bool) -> io::Result<()> {
    scope(async |s| {
        loop {
            let (stream, _) = listener.accept().await?;
            let answer = answer.clone();
            s.spawn(async move { one_answer(stream, &answer, size, may_know).await });
        }
    })
    .await
}

async fn one_answer(stream: TcpStream, answer: &[u8], size: u8, may_know: bool) {
    let Some(head) = head_of(&stream).await else { return };
    assert!(may_know || !head.contains(SECRET), "{head}");
    say(&stream, answer, size).await;
    _ = stream.shutdown(Shutdown::Write);
    let mut rest = Vec::new();
    while let Ok(1..) = stream.read_buf(&mut rest).await {}
}
