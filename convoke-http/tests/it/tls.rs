//! HTTPS: both sides agree on a protocol.

use std::future::IntoFuture;

use convoke::net::TcpStream;
use convoke::prelude::*;
use convoke::time::now;
use convoke_http::{ALPN, Connection, RequestBody, serve};
use convoke_tls::{Identity, Roots, TlsAcceptor, TlsConnector};
use http::{Request, Response, StatusCode};
use rcgen::{CertifiedKey, generate_simple_self_signed};

use crate::harness::{Log, ask, beside, http2, listener, seconds, simulated, stop};

/// A certificate, as its server and its clients see it.
pub(crate) fn certificate() -> (Identity, Roots) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["server".to_owned()]).unwrap();
    let identity = Identity::from_pem(cert.pem().as_bytes(), signing_key.serialize_pem().as_bytes()).unwrap();
    let mut roots = Roots::new();
    roots.add_pem(cert.pem().as_bytes()).unwrap();
    (identity, roots)
}

async fn is_encrypted(request: Request<RequestBody>) -> std::io::Result<Response<String>> {
    let encrypted = Connection::current().unwrap().is_encrypted();
    Ok(Response::new(format!("{:?} {encrypted}", request.version())))
}

#[test]
fn http2_is_agreed_on() {
    let (identity, roots) = certificate();
    let acceptor = TlsAcceptor::builder(identity).alpn(ALPN).build().unwrap();
    let connector = TlsConnector::builder(roots).alpn(ALPN).build().unwrap();
    simulated(move || {
        let (acceptor, connector) = (acceptor.clone(), connector.clone());
        async move {
            beside(serve(listener().await?, is_encrypted).tls(acceptor), async {
                scope(async |s| {
                    let stream = TcpStream::connect("127.0.0.1:80").await?;
                    let stream = connector.connect("server", stream).await?;
                    assert_eq!(stream.alpn(), Some(&b"h2"[..]));
                    let client = http2(&s, stream).await?;
                    assert_eq!(ask(&client, "/").await?, (StatusCode::OK, "HTTP/2.0 true".to_owned()));
                    Ok(())
                })
                .await
            })
            .await
        }
    });
}

#[test]
fn http1_is_spoken_with_and_without_agreement_and_the_end_is_told() {
    for alpn in [&["http/1.1"][..], &[]] {
        let (identity, roots) = certificate();
        let acceptor = TlsAcceptor::builder(identity).alpn(ALPN).build().unwrap();
        let connector = TlsConnector::builder(roots).alpn(alpn.iter().copied()).build().unwrap();
        simulated(move || {
            let (acceptor, connector) = (acceptor.clone(), connector.clone());
            async move {
                beside(serve(listener().await?, is_encrypted).tls(acceptor), async {
                    let stream = TcpStream::connect("127.0.0.1:80").await?;
                    let mut stream = connector.connect("server", stream).await?;
                    let request = b"GET / HTTP/1.1\r\nhost: server\r\nconnection: close\r\n\r\n";
                    convoke::io::write_all(&mut stream, request).await?;
                    let mut answer = Vec::new();
                    loop {
                        // Without close_notify the last read would be an error.
                        let mut bytes = [0; 1024];
                        let read = std::future::poll_fn(|cx| {
                            futures_io::AsyncRead::poll_read(std::pin::Pin::new(&mut stream), cx, &mut bytes)
                        });
                        match read.await? {
                            0 => break,
                            count => answer.extend_from_slice(&bytes[..count]),
                        }
                    }
                    let answer = String::from_utf8(answer).unwrap();
                    assert!(
                        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("HTTP/1.1 true"),
                        "{answer}"
                    );
                    Ok(())
                })
                .await
            }
        });
    }
}

#[test]
fn a_client_without_tls_is_reported_and_others_are_served() {
    let (identity, roots) = certificate();
    let acceptor = TlsAcceptor::builder(identity).alpn(ALPN).build().unwrap();
    let connector = TlsConnector::builder(roots).alpn(ALPN).build().unwrap();
    simulated(move || {
        let (acceptor, connector) = (acceptor.clone(), connector.clone());
        async move {
            let log = Log::default();
            let reports = log.clone();
            let server = serve(listener().await?, is_encrypted).tls(acceptor).report(move |report| {
                assert!(report.is_about_client(), "{report}");
                reports.add(report);
            });
            beside(server, async {
                let plain = TcpStream::connect("127.0.0.1:80").await?;
                plain.write_all(b"GET / HTTP/1.1\r\nhost: server\r\n\r\n").await?;
                sleep(seconds(1)).await;
                scope(async |s| {
                    let stream = TcpStream::connect("127.0.0.1:80").await?;
                    let client = http2(&s, connector.connect("server", stream).await?).await?;
                    assert_eq!(ask(&client, "/").await?.0, StatusCode::OK);
                    Ok(())
                })
                .await
            })
            .await?;
            let lines = log.lines();
            assert!(lines[0].contains("TLS failed"), "{lines:?}");
            Ok(())
        }
    });
}

#[test]
fn silent_clients_keep_nobody_from_a_server() {
    let (identity, roots) = certificate();
    let acceptor = TlsAcceptor::builder(identity).alpn(ALPN).build().unwrap();
    let connector = TlsConnector::builder(roots).alpn(ALPN).build().unwrap();
    simulated(move || {
        let (acceptor, connector) = (acceptor.clone(), connector.clone());
        async move {
            let server = serve(listener().await?, is_encrypted).tls(acceptor).report(|_| ());
            beside(server, async {
                let mut silent = Vec::new();
                for number in 0..=2 * convoke_tls::HANDSHAKES {
                    let stream = TcpStream::connect("127.0.0.1:80").await?;
                    // Every other one begins a record.
                    stream.write_all(&[22, 3, 1, 2, 0, 1][..number % 2 * 6]).await?;
                    silent.push(stream);
                }
                sleep(seconds(1)).await;
                let begun = now();
                scope(async |s| {
                    let stream = TcpStream::connect("127.0.0.1:80").await?;
                    let client = http2(&s, connector.connect("server", stream).await?).await?;
                    assert_eq!(ask(&client, "/").await?.0, StatusCode::OK);
                    std::io::Result::Ok(())
                })
                .await?;
                assert_eq!(now() - begun, seconds(0));
                // They have the time of a handshake.
                for stream in silent {
                    while stream.read(&mut [0; 64]).await.is_ok_and(|count| count > 0) {}
                }
                assert!(now() - begun < seconds(11), "{:?}", now() - begun);
                Ok(())
            })
            .await
        }
    });
}

#[test]
fn a_request_that_has_begun_is_answered_by_tls_when_the_server_drains() {
    for alpn in ALPN {
        let (identity, roots) = certificate();
        let acceptor = TlsAcceptor::builder(identity).alpn(ALPN).build().unwrap();
        let connector = TlsConnector::builder(roots).alpn([alpn]).build().unwrap();
        simulated(move || {
            let (acceptor, connector) = (acceptor.clone(), connector.clone());
            async move {
                let slow = async |_: Request<RequestBody>| {
                    sleep(seconds(5)).await;
                    std::io::Result::Ok(Response::new("finished".to_owned()))
                };
                let listener = listener().await?;
                scope(async |s| {
                    let server = s.spawn_future(serve(listener, slow).tls(acceptor).into_future());
                    let stream = TcpStream::connect("127.0.0.1:80").await?;
                    let mut stream = connector.connect("server", stream).await?;
                    let stopping = async {
                        sleep(seconds(1)).await;
                        stop(server).await;
                    };
                    if alpn == "h2" {
                        let client = http2(&s, stream).await?;
                        let (answer, ()) = join((ask(&client, "/"), stopping)).await;
                        assert_eq!(answer?.1, "finished");
                    } else {
                        stream.write_all(b"GET / HTTP/1.1\r\nhost: server\r\n\r\n").await?;
                        let (answer, ()) = join((read_to_end(&mut stream), stopping)).await;
                        assert!(answer?.ends_with("finished"), "and then close_notify");
                    }
                    Ok(())
                })
                .await
            }
        });
    }
}

/// Reads to close_notify. Any other end is an error.
pub(crate) async fn read_to_end<S>(stream: &mut convoke_tls::TlsStream<S>) -> std::io::Result<String>
where
    S: futures_io::AsyncRead + futures_io::AsyncWrite + Unpin,
{
    let (mut all, mut bytes) = (Vec::new(), [0; 1024]);
    loop {
        match stream.read(&mut bytes).await? {
            0 => return Ok(String::from_utf8(all).unwrap()),
            count => all.extend_from_slice(&bytes[..count]),
        }
    }
}
