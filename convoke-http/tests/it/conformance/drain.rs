//! HTTP/2: the end of a connection, when the server is asked to stop (RFC 9113, 6.8).

use std::future::IntoFuture;
use std::io;

use convoke::prelude::*;
use convoke_http::serve;

use super::frames::*;
use crate::harness::{listener, seconds, simulated, stop};

#[test]
fn a_client_is_told_of_the_drain_and_streams_that_were_begun_are_answered() {
    simulated(|| async {
        let listener = listener().await?;
        scope(async |s| {
            let server = s.spawn_future(serve(listener, length).into_future());
            let mut peer = Peer::connect(&[]).await?;
            peer.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, WAIT)).await;
            sleep(seconds(1)).await;
            let hear = async {
                let mut heard = Vec::new();
                while let Some(frame) = peer.frame().await {
                    // The first GOAWAY says that there is more to come, and asks by a ping when all has arrived.
                    if frame.kind == PING {
                        peer.send(&self::frame(PING, ACK, 0, &frame.payload)).await;
                    }
                    if frame.kind == GOAWAY {
                        heard.push(format!(
                            "up to {}",
                            u32::from_be_bytes(*frame.payload.first_chunk().unwrap())
                        ));
                    }
                    heard.extend(frame.says());
                }
                heard
            };
            let ((), heard) = join((stop(server), hear)).await;
            assert_eq!(
                heard,
                ["up to 2147483647", "goaway NO_ERROR", "up to 1", "goaway NO_ERROR", "200 1", "data 1 0"]
            );
            io::Result::Ok(())
        })
        .await
    });
}
