//! Requests and responses, by HTTP/1 and HTTP/2.

use std::io;

use bytes::Bytes;
use convoke::prelude::*;
use convoke_http::client::{Phase, Response};
use convoke_http::{Client, RequestBody, StreamedBody, serve, streamed};
use http::{Method, Request, StatusCode, Version};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;

use super::scripted::{Count, scripted};
use crate::harness::{beside, echo, listener, path, seconds, simulated};

fn both() -> [convoke_http::client::ClientBuilder; 2] {
    [Client::builder(), Client::builder().http2_only()]
}

#[test]
fn a_page_is_fetched_by_both_protocols_and_the_connection_is_used_again() {
    simulated(|| async {
        for (builder, version) in both().into_iter().zip([Version::HTTP_11, Version::HTTP_2]) {
            let client = builder.run(async |client| {
                for page in ["/one", "/two?x=1", "/"] {
                    let response = client.get(format!("http://127.0.0.1{page}")).send().await?;
                    assert_eq!((response.status(), response.version()), (StatusCode::OK, version));
                    assert_eq!(response.text().await?, page.split('?').next().unwrap());
                    assert_eq!(client.connections(), 1);
                }
                assert_eq!(client.idle_connections(), 1);
                Ok(())
            });
            beside(serve(listener().await?, path), client).await?;
        }
        Ok(())
    });
}

#[test]
fn bodies_go_both_ways() {
    simulated(|| async {
        for builder in both() {
            let client = builder.run(async |client| {
                let ask = async |body: &str| -> io::Result<String> {
                    let request = client.post("http://127.0.0.1/").body(body.to_owned());
                    Ok(request.send().await?.text().await?)
                };
                assert_eq!(ask("hello").await?, "hello");
                assert_eq!(ask("").await?, "");
                let large = "x".repeat(150_000);
                assert_eq!(ask(&large).await?, large);
                let chunks = ["one ", "two"].map(|chunk| io::Result::Ok(Frame::data(Bytes::from(chunk))));
                let stream = StreamBody::new(Chunks(chunks.into_iter().collect()));
                let response = client.put("http://127.0.0.1/").stream(stream).send().await?;
                assert_eq!(response.text().await?, "one two");
                assert_eq!(client.connections(), 1);
                Ok(())
            });
            beside(serve(listener().await?, echo), client).await?;
        }
        Ok(())
    });
}

/// A stream of chunks, each of which takes a poll.
struct Chunks(std::collections::VecDeque<io::Result<Frame<Bytes>>>);

impl futures_core::Stream for Chunks {
    type Item = io::Result<Frame<Bytes>>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.pop_front())
    }
}

#[test]
fn a_request_of_http_is_sent_with_its_head() {
    let script = async |_, mut peer: super::scripted::Peer| {
        let head = peer.head().await?;
        assert!(head.starts_with("patch /a?b=c http/1.1\r\n"), "{head}");
        for field in [
            "host: 127.0.0.1\r\n",
            "x-one: 1\r\n",
            "x-all: every\r\n",
            "authorization: basic bwu6c2vjcmv0\r\n",
        ] {
            assert!(head.contains(field), "{field} in {head}");
        }
        assert_eq!(peer.body(4).await?, "text");
        peer.answer("done").await
    };
    let name = http::HeaderName::from_static("x-all");
    let builder = Client::builder().header(name, http::HeaderValue::from_static("every"));
    simulated(move || {
        scripted(builder.clone(), script, async |client, _| {
            let request = Request::builder()
                .method(Method::PATCH)
                .uri("http://me:secret@127.0.0.1/a?b=c#fragment")
                .header("x-one", "1")
                .body(Full::<Bytes>::from("text"))
                .unwrap();
            assert_eq!(client.request(request).send().await?.text().await?, "done");
            Ok(())
        })
    });
}

#[test]
fn what_cannot_be_sent_is_an_error_of_the_request() {
    simulated(|| async {
        Client::run(async |client| {
            for uri in
                ["/path", "ftp://server/", "http://", "not a uri", "http://server:99999/", "https://server/"]
            {
                let error = client.get(uri).send().await.unwrap_err();
                assert!(error.is_request() && !error.may_have_been_processed(), "{uri}: {error:?}");
                assert_eq!(error.phase(), Phase::Request);
            }
            let error = client.get("http://server/").header("a b", "c").send().await.unwrap_err();
            assert!(error.is_request() && client.connections() == 0);
            Ok(())
        })
        .await
    });
}

#[test]
fn a_body_that_is_larger_than_the_limit_is_not_collected() {
    simulated(|| async {
        let builder = Client::builder().collected_bytes(1000);
        let client = builder.run(async |client| {
            let ask = async |bytes: usize| -> io::Result<Response> {
                Ok(client.post("http://127.0.0.1/").body("x".repeat(bytes)).send().await?)
            };
            assert_eq!(ask(1000).await?.bytes().await?.len(), 1000);
            let error = ask(1001).await?.bytes().await.unwrap_err();
            assert!(error.is_body() && error.to_string().contains("1000 bytes"), "{error}");
            assert_eq!(io::Error::from(error).kind(), io::ErrorKind::FileTooLarge);
            // Chunk by chunk there is no limit.
            let mut response = ask(5000).await?;
            let mut count = 0;
            while let Some(chunk) = response.chunk().await? {
                count += chunk.len();
            }
            assert_eq!(count, 5000);
            Ok(())
        });
        beside(serve(listener().await?, echo), client).await
    });
}

#[test]
fn a_status_becomes_an_error_on_request() {
    simulated(|| async {
        let teapot = async |_: Request<RequestBody>| {
            io::Result::Ok(http::Response::builder().status(418).body(String::new()).unwrap())
        };
        let client = Client::run(async |client| {
            let response = client.get("http://127.0.0.1/").send().await?;
            assert_eq!(response.status(), StatusCode::IM_A_TEAPOT);
            let error = response.error_for_status().unwrap_err();
            assert_eq!((error.status(), error.phase()), (Some(StatusCode::IM_A_TEAPOT), Phase::Status));
            assert!(error.to_string().starts_with("http://127.0.0.1: "), "{error}");
            Ok(())
        });
        beside(serve(listener().await?, teapot), client).await
    });
}

async fn two_chunks(_: Request<RequestBody>) -> io::Result<http::Response<StreamedBody>> {
    Ok(http::Response::new(streamed(async |body| {
        body.send("one ").await?;
        sleep(seconds(5)).await;
        body.send("two").await?;
        io::Result::Ok(())
    })))
}

#[test]
fn chunks_are_there_as_they_arrive() {
    simulated(|| async {
        for builder in both() {
            let client = builder.run(async |client| {
                let begun = convoke::time::now();
                let mut body = client.get("http://127.0.0.1/").send().await?.into_http().into_body();
                let first = body.frame().await.unwrap()?.into_data().unwrap();
                assert_eq!((&*first, convoke::time::now() - begun < seconds(5)), (&b"one "[..], true));
                assert_eq!(body.collect().await?.to_bytes(), "two");
                assert!(convoke::time::now() - begun >= seconds(5));
                Ok(())
            });
            beside(serve(listener().await?, two_chunks), client).await?;
        }
        Ok(())
    });
}

#[test]
fn many_requests_share_one_connection_by_http2() {
    simulated(|| async {
        let accepted = Count::default();
        let slow = async |_: Request<RequestBody>| {
            sleep(seconds(1)).await;
            io::Result::Ok(http::Response::new(String::new()))
        };
        let client = Client::builder().http2_only().run(async |client| {
            let begun = convoke::time::now();
            let all: Vec<_> = (0..50)
                .map(|_| async {
                    let response = client.get("http://127.0.0.1/").send().await?;
                    accepted.add();
                    response.text().await.map_err(io::Error::from)
                })
                .collect();
            for result in join(all).await {
                assert_eq!(result?, "");
            }
            assert_eq!((accepted.get(), client.connections()), (50, 1));
            assert!(convoke::time::now() - begun < seconds(2), "they were answered at the same time");
            Ok(())
        });
        beside(serve(listener().await?, slow), client).await
    });
}

#[test]
fn queries_are_encoded_and_tokens_are_sent() {
    /// Answers with the method, the target and the token.
    async fn mirror(request: Request<RequestBody>) -> io::Result<http::Response<String>> {
        let token = request.headers().get("authorization").map_or("", |value| value.to_str().unwrap());
        let target = request.uri().path_and_query().unwrap();
        Ok(http::Response::new(format!("{} {target} {token}", request.method())))
    }

    simulated(|| async {
        let client = Client::run(async |client| {
            let uri = "http://127.0.0.1";
            let request = client.patch(uri).query([("q", "café & cake"), ("page", "2")]).bearer_auth("a.b-c");
            let text = request.send().await?.text().await?;
            assert_eq!(text, "PATCH /?q=caf%C3%A9%20%26%20cake&page=2 Bearer a.b-c");
            // Behind what is there.
            let request = client.get(format!("{uri}/a?x=1")).query([("y", "/=?".to_owned())]);
            assert_eq!(request.query([("z", "")]).send().await?.text().await?, "GET /a?x=1&y=%2F%3D%3F&z= ");
            let none: [(&str, &str); 0] = [];
            assert_eq!(client.get(uri).query(none).send().await?.text().await?, "GET / ");
            let error = client.get(uri).bearer_auth("line\nbreak").send().await.unwrap_err();
            assert!(!error.may_have_been_processed() && !error.to_string().contains("break"), "{error}");
            Ok(())
        });
        beside(serve(listener().await?, mirror), client).await
    });
}
