//! The `date` header, by the clock of the host.

use std::io;

use bytes::Bytes;
use convoke::net::TcpStream;
use convoke::prelude::*;
use convoke::sim::{note, run_twice};
use convoke_http::{RequestBody, serve};
use http::{Request, Response};
use http_body_util::Full;

use crate::harness::{Client, Http2, beside, http2, listener, path, seconds, simulated};

/// Asks by HTTP/2, and returns the date of the response.
async fn date(client: &Http2) -> io::Result<String> {
    let request = Request::get("http://server/").body(Full::<Bytes>::default()).unwrap();
    let response = client.clone().send_request(request).await.map_err(io::Error::other)?;
    Ok(response.headers()["date"].to_str().unwrap().to_owned())
}

#[test]
fn responses_have_the_date_of_their_host_by_both_protocols() {
    simulated(|| async {
        beside(serve(listener().await?, path), async {
            // A simulation begins with the year 2000.
            let mut client = Client::connect().await?;
            let answer = client.get("/").await?;
            assert!(answer.head.contains("\r\ndate: sat, 01 jan 2000 00:00:0"), "{answer:?}");
            assert_eq!(answer.head.matches("\r\ndate:").count(), 1, "{answer:?}");
            scope(async |s| {
                let client = http2(&s, Client::connect().await?.stream).await?;
                assert!(date(&client).await?.starts_with("Sat, 01 Jan 2000 00:00:0"));
                sleep(seconds(50)).await;
                assert!(date(&client).await?.starts_with("Sat, 01 Jan 2000 00:00:5"));
                Ok(())
            })
            .await
        })
        .await
    });
}

#[test]
fn the_date_of_a_service_is_kept() {
    simulated(|| async {
        let dated = async |_: Request<RequestBody>| {
            io::Result::Ok(Response::builder().header("date", "yesterday").body(String::new()).unwrap())
        };
        beside(serve(listener().await?, dated), async {
            let answer = Client::connect().await?.get("/").await?;
            assert!(answer.head.contains("\r\ndate: yesterday\r\n"), "{answer:?}");
            assert_eq!(answer.head.matches("\r\ndate:").count(), 1, "{answer:?}");
            Ok(())
        })
        .await
    });
}

#[test]
fn by_http2_the_same_seed_is_the_same_run() {
    for seed in 0..5 {
        run_twice(seed, |sim| {
            sim.host("server").daemon().run(|| async { serve("0.0.0.0:80", path).await });
            sim.host("client").run(|| async {
                scope(async |s| {
                    let client = http2(&s, TcpStream::connect("server:80").await?).await?;
                    for pause in 0..3 {
                        note(date(&client).await?);
                        sleep(seconds(pause)).await;
                    }
                    Ok(())
                })
                .await
            });
        });
    }
}
