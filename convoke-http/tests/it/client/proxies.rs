//! Proxies: requests that they forward, and tunnels.

use std::io;

use convoke_http::Client;
use convoke_http::client::Proxy;

use super::scripted::{Peer, scripted};
use crate::harness::simulated;

#[test]
fn a_proxy_forwards_requests_of_all_origins_over_one_connection() {
    let proxy = async |_, mut peer: Peer| {
        for host in ["one.example", "two.example:8080"] {
            let head = peer.head().await?;
            assert!(head.starts_with(&format!("get http://{host}/page?x=1 http/1.1\r\n")), "{head}");
            assert!(head.contains(&format!("host: {host}\r\n")), "{head}");
            assert!(head.contains("proxy-authorization: basic bwu6yzpk\r\n"), "{head}");
            peer.answer("forwarded").await?;
        }
        peer.closed().await;
        Ok(())
    };
    simulated(move || {
        // The password is `c:d`.
        let builder = Client::builder().proxy(Proxy::all("http://me:c%3Ad@127.0.0.1:80").unwrap());
        scripted(builder, proxy, async |client, accepted| {
            for host in ["one.example", "two.example:8080"] {
                let response = client.get(format!("http://{host}/page?x=1")).send().await?;
                assert_eq!(response.text().await?, "forwarded");
            }
            assert_eq!(accepted.get(), 1);
            Ok(())
        })
    });
}

#[test]
fn hosts_that_are_excepted_are_asked_directly() {
    let vars = |name: &str| {
        Some(match name {
            "http_proxy" => "proxy.invalid:3128".to_owned(),
            "HTTP_PROXY" => panic!("a client of a CGI program can set it"),
            "NO_PROXY" => "example.org, 127.0.0.1:80 ,localhost:81".to_owned(),
            _ => return None,
        })
    };
    let server = async |_, mut peer: Peer| {
        let head = peer.head().await?;
        assert!(head.starts_with("get / http/1.1\r\n"), "{head}");
        peer.answer("direct").await
    };
    simulated(move || {
        let builder = Client::builder().proxy(Proxy::from_vars(vars).unwrap());
        scripted(builder, server, async |client, _| {
            assert_eq!(client.get("http://127.0.0.1/").send().await?.text().await?, "direct");
            // Through the proxy, which is not there.
            for uri in ["http://localhost/", "http://example.com/"] {
                let error = client.get(uri).send().await.unwrap_err();
                assert_eq!(error.origin().unwrap().host(), "proxy.invalid", "{error}");
            }
            // Not through the proxy, and not there either.
            let error = client.get("http://www.example.org/").send().await.unwrap_err();
            assert_eq!(error.origin().unwrap().host(), "www.example.org", "{error}");
            Ok(())
        })
    });
}

#[test]
fn the_uri_of_a_proxy_must_be_one() {
    for uri in ["https://proxy:1", "socks5://proxy:1", "http://", "http://proxy:port"] {
        let error = Proxy::all(uri).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{uri}");
    }
    let error = Proxy::all("http://me:secret@proxy:port").unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[cfg(feature = "tls")]
#[test]
fn https_goes_through_a_tunnel() {
    use super::tls::{acceptor, connector};
    use convoke::io::copy_bidirectional;
    use convoke::net::TcpStream;
    use convoke_http::client::Phase;
    use convoke_http::serve;

    let certificate = super::tls::certificate();
    simulated(move || {
        let (acceptor, connector) = (acceptor(&certificate), connector(&certificate));
        async move {
            let proxy = async |number: usize, mut peer: Peer| {
                let head = peer.head().await?;
                assert!(head.starts_with("connect server:443 http/1.1\r\nhost: server:443\r\n"), "{head}");
                if number == 0 {
                    peer.say("HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
                        .await?;
                    return Ok(());
                }
                peer.say("HTTP/1.1 200 Connection established\r\nvia: proxy\r\n\r\n").await?;
                let mut server = TcpStream::connect("127.0.0.1:443").await?;
                copy_bidirectional(&mut peer.stream, &mut server).await.map(drop)
            };
            let proxies = Proxy::all("127.0.0.1:80")?;
            let builder = Client::builder().tls(&connector).proxy(proxies);
            let listener = convoke::net::TcpListener::bind("127.0.0.1:443").await?;
            let server = serve(listener, crate::harness::path).tls(acceptor);
            let client = scripted(builder, proxy, async |client, accepted| {
                let error = client.get("https://server/").send().await.unwrap_err();
                assert!(error.phase() == Phase::Proxy && error.is_connect(), "{error}");
                assert!(error.to_string().contains("407"), "{error}");
                for page in ["/one", "/two"] {
                    let response = client.get(format!("https://server{page}")).send().await?;
                    assert_eq!(response.version(), http::Version::HTTP_2);
                    assert_eq!(response.text().await?, page);
                }
                assert_eq!(accepted.get(), 2);
                Ok(())
            });
            crate::harness::beside(server, client).await
        }
    });
}
