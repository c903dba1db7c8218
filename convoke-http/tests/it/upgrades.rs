//! Connections that change their protocol.

use std::future::IntoFuture;
use std::io;

use convoke::io::{read_exact, write_all};
use convoke::prelude::*;
use convoke::time::now;
use convoke_http::{RequestBody, Upgraded, serve, upgrade};
use http::header::{CONNECTION, UPGRADE};
use http::{Request, Response, StatusCode};

use crate::harness::{Client, Log, listener, seconds, simulated, stop};

/// A stream that says good bye when it is closed.
struct Polite(Upgraded);

impl AsyncClose for Polite {
    type Error = io::Error;

    async fn close(mut self, exit: Exit) -> io::Result<()> {
        write_all(&mut self.0, format!("bye, the body {exit}").as_bytes()).await
    }
}

/// Returns each byte, until the client sends a dot. An exclamation mark is a failure.
async fn echo(stream: Upgraded) -> io::Result<()> {
    using(Polite(stream), async |mut stream| {
        let mut byte = [0];
        loop {
            read_exact(&mut stream.0, &mut byte).await?;
            match byte[0] {
                b'.' => return Ok(()),
                b'!' => return Err(io::Error::other("somebody shouts")),
                _ => write_all(&mut stream.0, &byte).await?,
            }
        }
    })
    .await
}

async fn handler(mut request: Request<RequestBody>) -> io::Result<Response<String>> {
    if let Err(error) = upgrade(&mut request, echo) {
        return Ok(Response::new(error.to_string()));
    }
    let answer = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
    answer.header(CONNECTION, "upgrade").header(UPGRADE, "echo").body(String::new()).map_err(io::Error::other)
}

async fn upgraded() -> io::Result<Client> {
    let mut client = Client::connect().await?;
    client.send("GET / HTTP/1.1\r\nhost: s\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\nab").await?;
    assert_eq!(client.answer().await?.status, 101);
    Ok(client)
}

#[test]
fn an_upgraded_connection_hears_the_stop_at_once_and_says_good_bye() {
    simulated(|| async {
        let listener = listener().await?;
        scope(async |s| {
            let server = s.spawn_future(serve(listener, handler).into_future());
            let mut client = upgraded().await?;
            client.send("c").await?;
            sleep(seconds(100)).await;
            let begun = now();
            let (_, rest) = join((stop(server), async { (client.rest().await, drop(client)).0 })).await;
            assert_eq!(rest, "abcbye, the body was stopped (shutting down)");
            assert_eq!(now() - begun, seconds(0));
            Ok(())
        })
        .await
    });
}

#[test]
fn an_upgraded_connection_ends_by_itself_or_fails_and_is_reported() {
    simulated(|| async {
        let (listener, log) = (listener().await?, Log::default());
        let reports = log.clone();
        let server = serve(listener, handler)
            .report(move |report| reports.add(report.to_string().split_once("`: ").unwrap().1));
        scope(async |s| {
            let server = s.spawn_future(server.into_future());
            let (mut polite, mut rude) = (upgraded().await?, upgraded().await?);
            polite.send("c.").await?;
            assert_eq!(polite.rest().await, "abcbye, the body returned a value");
            rude.send("!").await?;
            assert_eq!(rude.rest().await, "abbye, the body failed");
            assert_eq!(
                Client::connect().await?.get("/").await?.body,
                "the request cannot be upgraded: it asks for no upgrade"
            );
            stop(server).await;
            io::Result::Ok(())
        })
        .await?;
        assert_eq!(log.lines(), ["somebody shouts"]);
        Ok(())
    });
}
