//! HTTPS: both sides agree on a protocol.

use convoke::net::TcpStream;
use convoke::prelude::*;
use convoke_http::{ALPN, Connection, RequestBody, serve};
use convoke_tls::{Identity, Roots, TlsAcceptor, TlsConnector};
use http::{Request, Response, StatusCode};
use rcgen::{CertifiedKey, generate_simple_self_signed};

use crate::harness::{Log, ask, beside, http2, listener, seconds, simulated};

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
