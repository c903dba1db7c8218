//! The time limits, each with its phase. All of it is virtual time.

use std::io;

use convoke::prelude::*;
use convoke::time::now;
use convoke_http::Client;
use convoke_http::client::Phase;

use super::scripted::{Peer, scripted};
use crate::harness::{seconds, simulated};

#[test]
fn a_server_that_says_nothing_ends_the_wait_for_the_head() {
    simulated(|| {
        let silent = async |_, peer: Peer| peer.keep_silent().await;
        scripted(Client::builder().head_time(seconds(7)), silent, async |client, accepted| {
            let begun = now();
            let error = client.get("http://127.0.0.1/").send().await.unwrap_err();
            assert_eq!((error.phase(), error.is_timeout()), (Phase::Head, true));
            assert!(error.may_have_been_processed(), "it was sent");
            assert_eq!(now() - begun, seconds(7));
            assert_eq!(io::Error::from(error).kind(), io::ErrorKind::TimedOut);
            // The connection was closed, and another one is opened.
            sleep(seconds(1)).await;
            assert_eq!(client.connections(), 0);
            client.get("http://127.0.0.1/").send().await.unwrap_err();
            assert_eq!(accepted.get(), 2);
            Ok(())
        })
    });
}

#[test]
fn a_body_that_stops_to_arrive_is_given_up() {
    simulated(|| {
        let half = async |_, mut peer: Peer| {
            peer.head().await?;
            peer.say("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n").await?;
            for _ in 0..3 {
                peer.say("a").await?;
                sleep(seconds(4)).await;
            }
            peer.keep_silent().await
        };
        scripted(Client::builder().body_idle_time(seconds(5)), half, async |client, _| {
            let begun = now();
            let response = client.get("http://127.0.0.1/").send().await?;
            let error = response.text().await.unwrap_err();
            assert!(error.is_body() && error.is_timeout(), "{error}");
            assert_eq!(now() - begun, seconds(13), "five seconds after the last chunk");
            Ok(())
        })
    });
}

#[test]
fn the_total_time_ends_in_whichever_phase_it_is() {
    simulated(|| {
        let script = async |_, mut peer: Peer| {
            let head = peer.head().await?;
            if head.starts_with("get /body") {
                peer.say("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await?;
            }
            peer.keep_silent().await
        };
        let builder = Client::builder().total_time(seconds(3)).connections_per_origin(2);
        scripted(builder, script, async |client, _| {
            let begun = now();
            let error = client.get("http://127.0.0.1/head").send().await.unwrap_err();
            assert_eq!((error.phase(), error.is_timeout(), now() - begun), (Phase::Head, true, seconds(3)));
            assert!(error.may_have_been_processed() && error.origin().is_some());
            let begun = now();
            let response = client.get("http://127.0.0.1/body").send().await?;
            sleep(seconds(2)).await;
            let error = response.text().await.unwrap_err();
            assert_eq!((error.phase(), error.is_timeout(), now() - begun), (Phase::Body, true, seconds(3)));
            // All connections are busy.
            let busy = || client.get("http://127.0.0.1/head").total_time(seconds(60));
            let waiting = async {
                sleep(seconds(1)).await;
                client.get("http://127.0.0.1/").send().await.unwrap_err()
            };
            let error =
                race((async { join((busy().send(), busy().send())).await.0.unwrap_err() }, waiting)).await;
            assert_eq!((error.phase(), error.is_timeout()), (Phase::Wait, true));
            assert!(!error.may_have_been_processed());
            Ok(())
        })
    });
}

#[test]
fn the_wait_for_a_connection_has_a_limit() {
    simulated(|| {
        let silent = async |_, peer: Peer| peer.keep_silent().await;
        let builder = Client::builder().connections_per_origin(1).wait_time(seconds(4));
        scripted(builder, silent, async |client, _| {
            let begun = now();
            let waiting = async {
                sleep(seconds(1)).await;
                client.get("http://127.0.0.1/").send().await.unwrap_err()
            };
            let first = async { client.get("http://127.0.0.1/").send().await.unwrap_err() };
            let error = race((first, waiting)).await;
            assert_eq!((error.phase(), error.is_timeout(), now() - begun), (Phase::Wait, true, seconds(5)));
            assert_eq!(client.waiting_requests(), 0);
            Ok(())
        })
    });
}

#[test]
fn an_upload_that_makes_progress_is_not_too_slow() {
    simulated(|| {
        // Reads 100,000 bytes each two seconds.
        let slow = async |_, mut peer: Peer| {
            peer.head().await?;
            for _ in 0..10 {
                sleep(seconds(2)).await;
                peer.body(100_000).await?;
            }
            peer.answer("got it").await
        };
        scripted(Client::builder().head_time(seconds(8)), slow, async |client, _| {
            let begun = now();
            let request = client.post("http://127.0.0.1/").body("x".repeat(1_000_000));
            assert_eq!(request.send().await?.text().await?, "got it");
            assert!(now() - begun >= seconds(20));
            Ok(())
        })
    });
}

#[test]
fn the_deadline_of_the_task_holds_too() {
    simulated(|| {
        let silent = async |_, peer: Peer| peer.keep_silent().await;
        scripted(Client::builder(), silent, async |client, _| {
            let begun = now();
            assert!(timeout(seconds(2), client.get("http://127.0.0.1/").send()).await.is_err());
            assert_eq!(now() - begun, seconds(2));
            sleep(seconds(1)).await;
            assert_eq!(client.connections(), 0, "its exchange was cut");
            Ok(())
        })
    });
}

#[test]
fn a_host_that_does_not_answer_ends_the_time_for_connecting() {
    use convoke::sim::explore_seeds;

    explore_seeds(0..5, |sim| {
        sim.host("server")
            .daemon()
            .run(async || convoke_http::serve("0.0.0.0:80", crate::harness::path).await);
        sim.host("client").run(async || {
            Client::builder()
                .connect_time(seconds(4))
                .run(async |client| {
                    sleep(seconds(1)).await;
                    let begun = now();
                    let error = client.get("http://server/").send().await.unwrap_err();
                    assert_eq!((error.phase(), error.is_timeout()), (Phase::Connect, true), "{error}");
                    assert_eq!(now() - begun, seconds(4));
                    assert!(!error.may_have_been_processed());
                    io::Result::Ok(())
                })
                .await
        });
        sim.at(seconds(0), |sim| sim.partition("server", "client"));
    });
}

#[cfg(feature = "tls")]
#[test]
fn a_proxy_that_opens_no_tunnel_ends_the_time_for_it() {
    let connector = super::tls::connector(&super::tls::certificate());
    simulated(move || {
        let silent = async |_, mut peer: Peer| {
            assert!(peer.head().await?.starts_with("connect example.com:443 http/1.1\r\n"));
            peer.keep_silent().await
        };
        let proxy = convoke_http::client::Proxy::all("http://127.0.0.1:80").unwrap();
        let builder = Client::builder().tls(&connector).proxy(proxy).connect_time(seconds(4));
        scripted(builder, silent, async |client, _| {
            let begun = now();
            let error = client.get("https://example.com/").send().await.unwrap_err();
            assert_eq!((error.phase(), error.is_timeout()), (Phase::Proxy, true), "{error}");
            assert_eq!(now() - begun, seconds(4));
            Ok(())
        })
    });
}
