//! Layers of tower around a router of axum: a bound on requests that are worked on, a trace of each, a limit on bodies,
//! compression, header fields. None of these needs a runtime of tokio's. A timeout does, and so it is ours: it stops the handler and
//! awaits its clean-up, where tower's would drop it.
//!
//! ```text
//! cargo run -p convoke-http --features tower,client --example layers
//! ```

use std::future::IntoFuture;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{BoxError, Router};
use convoke::net::TcpListener;
use convoke::prelude::*;
use convoke_http::{Client, Server, tower as from_tower};
use http::{HeaderValue, StatusCode, header};
use tower::ServiceBuilder;
use tower_http::compression::CompressionLayer;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::trace::TraceLayer;

/// The time that a handler may take.
const REQUEST_TIME: Duration = Duration::from_secs(1);
/// The number of requests that are worked on at a time.
const AT_A_TIME: usize = 2;

static ROLLED_BACK: AtomicUsize = AtomicUsize::new(0);

/// Takes longer than it may. Its clean-up is awaited before the client has its answer.
async fn slow() -> &'static str {
    let roll_back = async |exit: Exit| {
        sleep(Duration::from_millis(1)).await;
        println!("the slow handler {exit}");
        ROLLED_BACK.fetch_add(1, Relaxed);
    };
    ensure(roll_back, async { sleep(Duration::from_secs(3600)).await }).await;
    "never seen"
}

/// Stops a handler that takes too long.
async fn within_time(request: Request, next: Next) -> Response {
    match timeout(REQUEST_TIME, next.run(request)).await {
        Ok(response) => response,
        Err(_) => StatusCode::GATEWAY_TIMEOUT.into_response(),
    }
}

/// Answers requests that a layer has refused.
async fn refused(error: BoxError) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response()
}

fn service() -> impl convoke_http::HttpService {
    let router = Router::new()
        .route("/page", get(async || "all work and no play ".repeat(100)))
        .route("/length", post(async |body: String| body.len().to_string()))
        .route("/slow", get(slow))
        .layer(from_fn(within_time));
    // Around the router as a whole: the bound is one for all routes.
    let layers = ServiceBuilder::new()
        .layer(TraceLayer::new_for_http().on_response(|response: &http::Response<_>, took, _: &_| {
            let _: Duration = took;
            println!("answered: {}", response.status());
        }))
        .layer(SetResponseHeaderLayer::overriding(header::SERVER, HeaderValue::from_static("convoke")))
        .layer(CompressionLayer::new())
        .layer(axum::error_handling::HandleErrorLayer::new(refused))
        .load_shed()
        .concurrency_limit(AT_A_TIME)
        .layer(RequestBodyLimitLayer::new(1024));
    from_tower(layers.service(router))
}

/// Sends requests that each meet one of the layers.
async fn talk(address: SocketAddr) -> io::Result<()> {
    Client::run(async |client| {
        let uri = |path: &str| format!("http://{address}{path}");
        let page = client.get(uri("/page")).header(header::ACCEPT_ENCODING, "gzip").send().await?;
        assert_eq!(page.headers()[header::CONTENT_ENCODING], "gzip");
        assert_eq!(page.headers()[header::SERVER], "convoke");
        let length = page.bytes().await?.len();
        println!("2100 bytes are {length}");
        assert!(length < 100);

        let upload = client.post(uri("/length")).body("x".repeat(1025)).send().await?;
        assert_eq!(upload.status(), StatusCode::PAYLOAD_TOO_LARGE);

        // Two are worked on; the third is shed at once; and the place of those that were stopped is free again.
        let slow = async || client.get(uri("/slow")).send().await.map(|response| response.status());
        let (first, second, third) = join((slow(), slow(), slow())).await;
        let mut statuses = [first?.as_u16(), second?.as_u16(), third?.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [503, 504, 504]);
        assert_eq!(ROLLED_BACK.load(Relaxed), AT_A_TIME);
        let upload = client.post(uri("/length")).body("x".repeat(1024)).send().await?;
        assert_eq!(upload.text().await?, "1024");
        Ok(())
    })
    .await
}

#[convoke::main]
async fn main() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = Server::new(listener, service());
    race((server.into_future(), talk(address))).await
}
