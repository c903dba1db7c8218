//! The end of a client.

use std::io;

use convoke::prelude::*;
use convoke::time::now;
use convoke_http::{Client, serve};

use super::scripted::{Peer, scripted};
use crate::harness::{Log, beside, listener, path, seconds, simulated};

#[test]
fn a_client_has_closed_its_connections_when_it_returns() {
    for builder in [Client::builder(), Client::builder().http2_only()] {
        simulated(move || {
            let builder = builder.clone();
            async move {
                let client = async {
                    let kept = builder
                        .run(async |client| {
                            assert_eq!(client.get("http://127.0.0.1/x").send().await?.text().await?, "/x");
                            io::Result::Ok(client)
                        })
                        .await?;
                    assert_eq!(kept.connections(), 0);
                    let error = kept.get("http://127.0.0.1/").send().await.unwrap_err();
                    assert!(error.is_closed() && !error.may_have_been_processed(), "{error:?}");
                    Ok(())
                };
                beside(serve(listener().await?, path), client).await
            }
        });
    }
}

#[test]
fn a_request_of_a_clone_has_the_grace_period() {
    let slow = async |_, mut peer: Peer| {
        let head = peer.head().await?;
        sleep(if head.starts_with("get /short") { seconds(2) } else { seconds(60) }).await;
        peer.answer("finished").await
    };
    simulated(move || {
        scripted(Client::builder(), slow, async |_, _| {
            scope(async |s| {
                let begun = now();
                Client::builder()
                    .grace(seconds(4))
                    .run(async |client| {
                        let other = client.clone();
                        s.spawn(async move {
                            let response = client.get("http://127.0.0.1/short").send().await?;
                            assert_eq!(response.text().await?, "finished");
                            assert_eq!(now() - begun, seconds(2));
                            io::Result::Ok(())
                        });
                        s.spawn(async move {
                            let error = other.get("http://127.0.0.1/long").send().await.unwrap_err();
                            assert!(error.may_have_been_processed() && !error.is_timeout(), "{error}");
                            assert_eq!(now() - begun, seconds(5));
                            io::Result::Ok(())
                        });
                        sleep(seconds(1)).await;
                    })
                    .await;
                assert_eq!(now() - begun, seconds(5), "one second, and the grace period");
                Ok(())
            })
            .await
        })
    });
}

/// Says goodbye to the server, by a request.
struct Session<'a>(&'a Client, Log);

impl AsyncClose for Session<'_> {
    type Error = io::Error;

    async fn close(self, _: Exit) -> io::Result<()> {
        let answer = self.0.post("http://127.0.0.1/bye").send().await?.text().await?;
        self.1.add(answer);
        Ok(())
    }
}

#[test]
fn clean_up_can_use_the_client_although_the_task_was_stopped() {
    simulated(|| async {
        let log = Log::default();
        let program = Client::run(async |client| {
            using(Session(&client, log.clone()), async |session| {
                session.0.get("http://127.0.0.1/").send().await?.text().await?;
                sleep(seconds(3600)).await;
                io::Result::Ok(())
            })
            .await
        });
        let stopped = async {
            assert!(timeout(seconds(5), Box::pin(program)).await.is_err());
            Ok(())
        };
        beside(serve(listener().await?, path), stopped).await?;
        assert_eq!(log.lines(), ["/bye"]);
        Ok(())
    });
}

#[test]
fn a_server_that_does_not_let_go_does_not_keep_the_client() {
    simulated(|| {
        let deaf = async |_, mut peer: Peer| {
            peer.head().await?;
            peer.say("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await?;
            peer.keep_silent().await
        };
        scripted(Client::builder(), deaf, async |_, _| {
            let begun = now();
            let response = Client::run(async |client| client.get("http://127.0.0.1/").send().await).await?;
            assert!(now() - begun <= seconds(6), "{:?}", now() - begun);
            let error = response.text().await.unwrap_err();
            assert!(error.is_body(), "{error}");
            Ok(())
        })
    });
}
