//! Redirects: where they lead, and what goes along.

use std::io;

use bytes::Bytes;
use convoke_http::client::{Payload, Phase};
use convoke_http::{Client, RequestBody, serve};
use http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};

use crate::harness::{beside, listener, simulated};

/// Redirects with the status and to the location of its header fields, once. Answers others with what it sees.
async fn redirecting(request: Request<RequestBody>) -> io::Result<Response<String>> {
    let field = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    if let (Some(status), Some(location), "/a/b") = (field("status"), field("to"), request.uri().path()) {
        let answer = Response::builder().status(&*status).header(LOCATION, location);
        return Ok(answer.body("moved".to_owned()).unwrap());
    }
    let secret = if request.headers().contains_key(AUTHORIZATION) { " with secret" } else { "" };
    let kind = if request.headers().contains_key(CONTENT_TYPE) { " with type" } else { "" };
    let line = format!("{} {}{secret}{kind}", request.method(), request.uri());
    let body = request.into_body().collect().await?.to_bytes();
    Ok(Response::new(format!("{line} {}", String::from_utf8_lossy(&body))))
}

#[test]
fn locations_are_resolved_against_the_request() {
    simulated(|| async {
        let client = Client::run(async |client| {
            for (location, target) in [
                ("/c?x=1", "/c?x=1"),
                ("c", "/a/c"),
                ("?y", "/a/b?y"),
                ("../c", "/c"),
                ("../../../c/./d/..", "/c/"),
                ("//127.0.0.1/c", "/c"),
                ("http://127.0.0.1/c#part", "/c"),
                ("http://127.0.0.1", "/"),
            ] {
                // A relative reference without a path stays at the page, which would redirect again.
                let once = if location == "?y" { "302 " } else { "302" };
                let request = client.get("http://127.0.0.1/a/b").header("to", location);
                let response = request.header("status", once.trim()).redirects(1).send().await;
                if location == "?y" {
                    assert!(response.unwrap_err().is_redirect());
                    continue;
                }
                let response = response?;
                assert_eq!(response.uri().path(), target.split('?').next().unwrap());
                assert_eq!(response.text().await?, format!("GET {target} "), "{location}");
                assert_eq!(client.connections(), 1, "the connection was used again");
            }
            io::Result::Ok(())
        });
        beside(serve(listener().await?, redirecting), client).await
    });
}

#[test]
fn methods_and_bodies_change_as_the_status_says() {
    simulated(|| async {
        let client = Client::run(async |client| {
            for (method, status, expected) in [
                (Method::POST, "301", "GET /c "),
                (Method::POST, "302", "GET /c "),
                (Method::POST, "303", "GET /c "),
                (Method::POST, "307", "POST /c with type text"),
                (Method::POST, "308", "POST /c with type text"),
                (Method::PUT, "302", "PUT /c with type text"),
                (Method::PUT, "303", "GET /c "),
            ] {
                let request = client.method(method.clone(), "http://127.0.0.1/a/b").body("text");
                let request = request.header("status", status).header("to", "/c");
                let response = request.header(CONTENT_TYPE, "text/plain").send().await?;
                assert_eq!(response.text().await?, expected, "{method} {status}");
            }
            // A stream cannot be sent again: the program gets the redirect.
            let stream = Payload::stream(Empty::<Bytes>::new().with_trailers(async { None }));
            let request = client.post("http://127.0.0.1/a/b").body(stream);
            let response = request.header("status", "307").header("to", "/c").send().await?;
            assert_eq!(response.status(), StatusCode::TEMPORARY_REDIRECT);
            // As it does if it follows none.
            let request = client.get("http://127.0.0.1/a/b").redirects(0);
            let response = request.header("status", "302").header("to", "/c").send().await?;
            assert_eq!(response.status(), StatusCode::FOUND);
            io::Result::Ok(())
        });
        beside(serve(listener().await?, redirecting), client).await
    });
}

#[test]
fn another_origin_does_not_see_what_is_secret() {
    simulated(|| async {
        let client = Client::run(async |client| {
            for (location, expected) in [
                ("/c", "GET /c with secret "),
                ("http://127.0.0.1:80/c", "GET /c with secret "),
                ("http://localhost/c", "GET /c "),
            ] {
                let request = client.get("http://127.0.0.1/a/b").basic_auth("me", "secret");
                let response = request.header("status", "302").header("to", location).send().await?;
                assert_eq!(response.text().await?, expected, "{location}");
            }
            io::Result::Ok(())
        });
        beside(serve(listener().await?, redirecting), client).await
    });
}

#[test]
fn a_redirect_that_leads_nowhere_is_an_error() {
    simulated(|| async {
        let client = Client::builder().redirects(3).run(async |client| {
            for location in ["/a/b", "ftp://server/", "http://"] {
                let request = client.get("http://127.0.0.1/a/b");
                let error = request.header("status", "302").header("to", location).send().await.unwrap_err();
                assert_eq!(error.phase(), Phase::Redirect, "{location}: {error}");
            }
            io::Result::Ok(())
        });
        beside(serve(listener().await?, redirecting), client).await
    });
}
