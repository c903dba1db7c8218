//! Connections by HTTP/1 between two requests: they have no state of hyper, and everything else is as before.

use std::future::IntoFuture;

use convoke::prelude::*;
use convoke::time::now;
use convoke_http::serve;

use crate::harness::{Client, beside, listener, path, seconds, simulated, stop};

#[test]
fn requests_are_answered_after_any_pause() {
    simulated(|| async {
        beside(serve(listener().await?, path), async {
            let mut client = Client::connect().await?;
            // Dormant at once; awake, because the next comes soon; dormant after a second; and all of that again.
            for pause in [0, 0, 0, 2, 30, 0, 59, 0] {
                assert_eq!(client.get("/page").await?.body, "/page");
                sleep(seconds(pause)).await;
            }
            Ok(())
        })
        .await
    });
}

#[test]
fn the_beginning_of_the_next_head_is_not_lost() {
    simulated(|| async {
        beside(serve(listener().await?, path), async {
            let mut client = Client::connect().await?;
            client.send("GET /1 HTTP/1.1\r\nhost: s\r\n\r\nGET /2 HT").await?;
            assert_eq!(client.answer().await?.body, "/1");
            sleep(seconds(5)).await;
            client.send("TP/1.1\r\nhost: s\r\n\r\nGET /3 HTTP/1.1\r\nhost: s\r\n\r\n").await?;
            assert_eq!(
                (client.answer().await?.body, client.answer().await?.body),
                ("/2".into(), "/3".into())
            );
            Ok(())
        })
        .await
    });
}

#[test]
fn a_slow_head_after_a_pause_is_answered_with_408() {
    simulated(|| async {
        beside(serve(listener().await?, path), async {
            let mut client = Client::connect().await?;
            client.get("/").await?;
            sleep(seconds(20)).await;
            client.send("GET / HTTP/1.1\r\n").await?;
            let begun = now();
            assert_eq!((client.answer().await?.status, now() - begun), (408, seconds(10)));
            Ok(())
        })
        .await
    });
}

#[test]
fn a_busy_connection_is_idle_after_its_last_request_for_a_limited_time() {
    simulated(|| async {
        beside(serve(listener().await?, path), async {
            for requests in [1, 3] {
                let mut client = Client::connect().await?;
                for _ in 0..requests {
                    client.get("/").await?;
                }
                let begun = now();
                assert_eq!(client.rest().await, "");
                // A second more for one that was busy: its time without a request begins when it is dormant.
                assert!((now() - begun).as_secs() / 2 == 30, "{:?}", now() - begun);
            }
            Ok(())
        })
        .await
    });
}

#[cfg(feature = "tls")]
#[test]
fn the_end_of_a_dormant_connection_is_told_by_tls() {
    use convoke::net::TcpStream;
    use convoke_tls::{TlsAcceptor, TlsConnector};

    let (identity, roots) = crate::tls::certificate();
    let (acceptor, connector) = (TlsAcceptor::new(identity).unwrap(), TlsConnector::new(roots).unwrap());
    // Drained, and idle for too long.
    for drains in [true, false] {
        let (acceptor, connector) = (acceptor.clone(), connector.clone());
        simulated(move || {
            let (acceptor, connector) = (acceptor.clone(), connector.clone());
            async move {
                let server = serve(listener().await?, path).tls(acceptor);
                scope(async |s| {
                    let server = s.spawn_future(server.into_future());
                    let stream = TcpStream::connect("127.0.0.1:80").await?;
                    let mut stream = connector.connect("server", stream).await?;
                    let request = b"GET / HTTP/1.1\r\nhost: server\r\n\r\n";
                    convoke::io::write_all(&mut stream, request).await?;
                    sleep(seconds(5)).await;
                    // Without close_notify, the last read is an error.
                    let reading = async {
                        while stream.read(&mut [0; 1024]).await? > 0 {}
                        std::io::Result::Ok(())
                    };
                    if drains {
                        return join((stop(server), reading)).await.1;
                    }
                    reading.await?;
                    stop(server).await;
                    Ok(())
                })
                .await
            }
        });
    }
}
