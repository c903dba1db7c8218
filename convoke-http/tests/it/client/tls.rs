//! HTTPS: versions of HTTP that both sides agree on.

use std::io;

use convoke::prelude::*;
use convoke_http::client::Phase;
use convoke_http::{ALPN, Client, serve};
use convoke_tls::{Identity, Roots, TlsAcceptor, TlsConnector, TlsError};
use http::Version;
use rcgen::{CertifiedKey, generate_simple_self_signed};

use super::scripted::{Peer, scripted};
use crate::harness::{beside, listener, path, seconds, simulated};

/// A certificate of the host `server` with its key, both in PEM.
pub(crate) fn certificate() -> (String, String) {
    let names = ["server".to_owned(), "127.0.0.1".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    (cert.pem(), signing_key.serialize_pem())
}

pub(crate) fn acceptor((certificate, key): &(String, String)) -> TlsAcceptor {
    let identity = Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
    TlsAcceptor::builder(identity).alpn(ALPN).build().unwrap()
}

pub(crate) fn connector((certificate, _): &(String, String)) -> TlsConnector {
    let mut roots = Roots::new();
    roots.add_pem(certificate.as_bytes()).unwrap();
    TlsConnector::new(roots).unwrap()
}

#[test]
fn both_sides_agree_on_a_version_and_many_requests_share_a_connection_if_it_is_http2() {
    let certificate = certificate();
    for (limit, version, connections) in
        [(None, Version::HTTP_2, 1), (Some(true), Version::HTTP_2, 1), (Some(false), Version::HTTP_11, 5)]
    {
        let certificate = certificate.clone();
        simulated(move || {
            let certificate = certificate.clone();
            async move {
                let builder = Client::builder().tls(&connector(&certificate));
                let builder = match limit {
                    None => builder,
                    Some(true) => builder.http2_only(),
                    Some(false) => builder.http1_only(),
                };
                let client = builder.run(async |client| {
                    // All at once, before it is known what the server speaks.
                    let all: Vec<_> = (0..5)
                        .map(|index| {
                            let client = &client;
                            async move {
                                let uri = format!("https://127.0.0.1:80/{index}");
                                let response = client.get(uri).send().await?;
                                assert_eq!(response.version(), version);
                                assert_eq!(response.text().await?, format!("/{index}"));
                                io::Result::Ok(())
                            }
                        })
                        .collect();
                    for result in join(all).await {
                        result?;
                    }
                    assert!(client.connections() <= connections, "{client:?}");
                    Ok(())
                });
                beside(serve(listener().await?, path).tls(acceptor(&certificate)), client).await
            }
        });
    }
}

#[test]
fn a_server_that_speaks_only_http1_gets_a_connection_for_each_request_at_a_time() {
    let certificate = certificate();
    simulated(move || {
        let certificate = certificate.clone();
        async move {
            let (pem, key) = &certificate;
            let identity = Identity::from_pem(pem.as_bytes(), key.as_bytes()).unwrap();
            let acceptor = TlsAcceptor::builder(identity).alpn(["http/1.1"]).build()?;
            let slow = async |_: http::Request<convoke_http::RequestBody>| {
                sleep(seconds(1)).await;
                io::Result::Ok(http::Response::new(String::new()))
            };
            let client = Client::builder().tls(&connector(&certificate)).run(async |client| {
                let begun = convoke::time::now();
                let all: Vec<_> = (0..5).map(|_| client.get("https://127.0.0.1:80/").send()).collect();
                for response in join(all).await {
                    assert_eq!(response?.version(), Version::HTTP_11);
                }
                assert!(convoke::time::now() - begun < seconds(2));
                Ok(())
            });
            beside(serve(listener().await?, slow).tls(acceptor), client).await
        }
    });
}

#[test]
fn a_certificate_that_is_not_trusted_is_an_error_of_the_handshake() {
    let (one, other) = (certificate(), certificate());
    simulated(move || {
        let (one, other) = (one.clone(), other.clone());
        async move {
            let client = Client::builder().tls(&connector(&other)).run(async |client| {
                let error = client.get("https://127.0.0.1:80/").send().await.unwrap_err();
                assert!(error.phase() == Phase::Tls && error.is_connect() && !error.is_timeout(), "{error}");
                let source = std::error::Error::source(&error).unwrap().downcast_ref::<io::Error>().unwrap();
                let tls = source.get_ref().unwrap().downcast_ref::<TlsError>().unwrap();
                assert!(tls.is_about_certificate(), "{error}");
                Ok(())
            });
            let server = serve(listener().await?, path).tls(acceptor(&one)).report(drop);
            beside(server, client).await
        }
    });
}

#[test]
fn a_handshake_that_takes_too_long_fails_all_who_wait_for_it() {
    let certificate = certificate();
    simulated(move || {
        let silent = async |_, peer: Peer| peer.keep_silent().await;
        let builder = Client::builder().tls(&connector(&certificate)).tls_time(seconds(3));
        scripted(builder, silent, async |client, accepted| {
            let begun = convoke::time::now();
            let all: Vec<_> = (0..5).map(|_| client.get("https://127.0.0.1:80/").send()).collect();
            for result in join(all).await {
                let error = result.unwrap_err();
                assert!(error.phase() == Phase::Tls && error.is_timeout(), "{error}");
                assert_eq!(error.origin().unwrap().to_string(), "https://127.0.0.1:80");
            }
            assert_eq!((accepted.get(), convoke::time::now() - begun), (1, seconds(3)));
            Ok(())
        })
    });
}
