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

#[test]
fn an_upgraded_connection_whose_client_does_not_read_ends_with_the_drain() {
    simulated(|| async {
        /// Has much to say at its end.
        struct Talkative(Upgraded);

        impl AsyncClose for Talkative {
            type Error = io::Error;

            async fn close(mut self, _: Exit) -> io::Result<()> {
                write_all(&mut self.0, &vec![b'x'; 64 << 20]).await
            }
        }

        let talk = async |mut request: Request<RequestBody>| {
            let talking = async |stream| {
                let body = using(Talkative(stream), async |_| {
                    sleep(seconds(3600)).await;
                    io::Result::Ok(())
                });
                body.await
            };
            upgrade(&mut request, talking).map_err(io::Error::other)?;
            let answer = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
            let answer = answer.header(CONNECTION, "upgrade").header(UPGRADE, "echo");
            answer.body(String::new()).map_err(io::Error::other)
        };
        let listener = listener().await?;
        scope(async |s| {
            let server = s.spawn_future(serve(listener, talk).grace(seconds(3)).into_future());
            let client = upgraded().await?;
            sleep(seconds(1)).await;
            let begun = now();
            stop(server).await;
            // The grace period, and the margin for clean-ups: then the socket is shut down. `using` reports that the close
            // has failed.
            assert_eq!(now() - begun, seconds(4));
            drop(client);
            Ok(())
        })
        .await
    });
}

#[cfg(feature = "tls")]
mod encrypted {
    use convoke::net::TcpStream;
    use convoke_tls::{TlsAcceptor, TlsConnector, TlsStream};

    use super::*;
    use crate::tls::{certificate, read_to_end};

    /// Ends in the way that the path says, and does not close the stream itself but for `/using`.
    async fn handler(mut request: Request<RequestBody>) -> io::Result<Response<String>> {
        let way = request.uri().path().to_owned();
        let talk = async move |mut stream: Upgraded| -> io::Result<()> {
            if way == "/using" {
                return using(stream, async |mut stream| write_all(&mut *stream, b"hello").await).await;
            }
            write_all(&mut stream, b"hello").await?;
            match &*way {
                "/return" => Ok(()),
                "/error" => Err(io::Error::other("it fails")),
                "/panic" => panic!("it panics"),
                _ => convoke::task::forever().await,
            }
        };
        upgrade(&mut request, talk).map_err(io::Error::other)?;
        let answer = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
        let answer = answer.header(CONNECTION, "upgrade").header(UPGRADE, "echo");
        answer.body(String::new()).map_err(io::Error::other)
    }

    async fn ask(connector: &TlsConnector, way: &str) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect("127.0.0.1:80").await?;
        let mut stream = connector.connect("server", stream).await?;
        let head = format!("GET /{way} HTTP/1.1\r\nhost: s\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        Ok(stream)
    }

    #[test]
    fn the_client_of_an_upgraded_connection_sees_close_notify_however_its_handler_ends() {
        let (identity, roots) = certificate();
        let (acceptor, connector) = (TlsAcceptor::new(identity).unwrap(), TlsConnector::new(roots).unwrap());
        simulated(move || {
            let (acceptor, connector) = (acceptor.clone(), connector.clone());
            async move {
                let server = serve(listener().await?, handler).tls(acceptor).report(|_| ());
                scope(async |s| {
                    let server = s.spawn_future(server.into_future());
                    for way in ["return", "error", "panic", "using"] {
                        let begun = now();
                        let heard = read_to_end(&mut ask(&connector, way).await?).await;
                        assert!(heard.is_ok_and(|heard| heard.ends_with("\r\n\r\nhello")), "{way}");
                        assert_eq!(now() - begun, seconds(0));
                    }
                    let mut open = ask(&connector, "wait").await?;
                    sleep(seconds(5)).await;
                    let begun = now();
                    // The client closes when it has heard the end.
                    let client = async {
                        let heard = read_to_end(&mut open).await;
                        drop(open);
                        heard
                    };
                    let (heard, ()) = join((client, stop(server))).await;
                    assert!(heard?.ends_with("hello"));
                    assert_eq!(now() - begun, seconds(0));
                    Ok(())
                })
                .await
            }
        });
    }

    #[cfg(feature = "client")]
    #[test]
    fn a_client_closes_its_upgraded_connection_so_that_all_is_delivered() {
        let certificate = crate::client::tls::certificate();
        let acceptor = crate::client::tls::acceptor(&certificate);
        let connector = crate::client::tls::connector(&certificate);
        simulated(move || {
            let (acceptor, connector) = (acceptor.clone(), connector.clone());
            async move {
                let log = Log::default();
                let heard = log.clone();
                let listen = move |mut request: Request<RequestBody>| {
                    let log = heard.clone();
                    async move {
                        let talk = async move |mut stream: Upgraded| {
                            let mut words = [0; 5];
                            read_exact(&mut stream, &mut words).await?;
                            // Without close_notify, this is an error of another kind.
                            let end = read_exact(&mut stream, &mut [0]).await.unwrap_err();
                            log.add(format!("{} {end}", String::from_utf8_lossy(&words)));
                            io::Result::Ok(())
                        };
                        upgrade(&mut request, talk).map_err(io::Error::other)?;
                        let answer = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
                        let answer = answer.header(CONNECTION, "upgrade").header(UPGRADE, "echo");
                        answer.body(String::new()).map_err(io::Error::other)
                    }
                };
                let server = serve(listener().await?, listen).tls(acceptor);
                crate::harness::beside(server, async {
                    let client = convoke_http::Client::builder().tls(&connector);
                    client
                        .run(async |client| {
                            let request = client.get("https://127.0.0.1:80/");
                            let request = request.header(CONNECTION, "upgrade").header(UPGRADE, "echo");
                            let stream = request.send().await?.upgrade().await?;
                            using(stream, async |mut stream| write_all(&mut *stream, b"hello").await).await
                        })
                        .await
                })
                .await?;
                let lines = log.lines();
                assert!(lines.len() == 1 && !lines[0].contains("close_notify"), "{lines:?}");
                Ok(())
            }
        });
    }
}
