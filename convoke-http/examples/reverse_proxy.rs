//! A reverse proxy: passes requests on to another server, and the responses back. Bodies are passed on while they arrive, in both
//! directions, and a side that is slow slows the other one down.
//!
//! ```text
//! cargo run -p convoke-http --features client --example reverse_proxy
//! ```

use std::io;
use std::time::Duration;

use convoke::net::TcpListener;
use convoke::prelude::*;
use convoke_http::client::ResponseBody;
use convoke_http::{Client, Connection, RequestBody, StreamedBody, serve, streamed};
use http::header::{CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE};
use http::uri::{Authority, Scheme};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Either, Empty};

/// The body that the proxy answers with: that of the other server, or none.
pub(crate) type Passed = Either<ResponseBody, Empty<bytes::Bytes>>;

/// Removes the fields that are about one connection, and not about the message.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let others = [CONNECTION, TE, TRANSFER_ENCODING, UPGRADE, HeaderName::from_static("keep-alive")];
    for name in named.into_iter().chain(others) {
        headers.remove(name);
    }
}

/// Passes a request on to the server `upstream`.
pub(crate) async fn pass_on(
    client: Client,
    upstream: Authority,
    mut request: Request<RequestBody>,
) -> io::Result<Response<Passed>> {
    let mut target = request.uri().clone().into_parts();
    target.scheme = Some(Scheme::HTTP);
    target.authority = Some(upstream);
    *request.uri_mut() = Uri::from_parts(target).map_err(io::Error::other)?;
    remove_hop_by_hop(request.headers_mut());
    request.headers_mut().remove(HOST);
    if let Some(peer) = Connection::current().and_then(|connection| connection.peer().internet()) {
        // Without the port, as everybody writes it.
        let peer = HeaderValue::try_from(peer.ip().to_string()).map_err(io::Error::other)?;
        request.headers_mut().append(HeaderName::from_static("x-forwarded-for"), peer);
    }
    // If our client hangs up, this handler is asked to stop, and with it the request to the other server.
    match client.request(request).redirects(0).send().await {
        Ok(response) => {
            let mut response = response.into_http();
            remove_hop_by_hop(response.headers_mut());
            Ok(response.map(Either::Left))
        }
        Err(error) => {
            eprintln!("{error}");
            let status =
                if error.is_timeout() { StatusCode::GATEWAY_TIMEOUT } else { StatusCode::BAD_GATEWAY };
            let mut answer = Response::new(Either::Right(Empty::new()));
            *answer.status_mut() = status;
            Ok(answer)
        }
    }
}

/// The other server: returns each chunk in capitals as it comes.
async fn shout(request: Request<RequestBody>) -> io::Result<Response<StreamedBody>> {
    let seen = request.headers().contains_key("x-forwarded-for");
    let mut body = request.into_body();
    Ok(Response::new(streamed(async move |writer| {
        writer.send(format!("forwarded: {seen}\n")).await?;
        while let Some(frame) = body.frame().await {
            if let Ok(chunk) = frame?.into_data() {
                writer.send(chunk.to_ascii_uppercase()).await?;
            }
        }
        io::Result::Ok(())
    })))
}

#[convoke::main]
async fn main() -> io::Result<()> {
    let upstream = TcpListener::bind("127.0.0.1:0").await?;
    let front = TcpListener::bind("127.0.0.1:0").await?;
    let (target, at) = (upstream.local_addr()?.to_string(), front.local_addr()?);
    let target: Authority = target.parse().map_err(io::Error::other)?;

    let proxy = Client::builder().head_time(Duration::from_secs(5)).run(async |client| {
        serve(front, move |request| pass_on(client.clone(), target.clone(), request)).await
    });
    let visitor = Client::run(async |client| {
        let request = client.post(format!("http://{at}/")).body("a large text ".repeat(10_000));
        let answer = request.send().await?.error_for_status()?.text().await?;
        let first = answer.lines().next().unwrap_or_default();
        println!("{first}, {} bytes", answer.len());
        assert!(first == "forwarded: true" && answer.ends_with("A LARGE TEXT "));
        Ok(())
    });
    race((async { serve(upstream, shout).await }, proxy, visitor)).await
}
