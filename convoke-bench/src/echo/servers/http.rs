//! HTTP servers that answer `hello`: the server of `convoke-http`, and hyper on tokio, the same hyper.
//!
//! Convoke's has its default limits and a task per request. `tokio` is hyper bare: no limit, no timer, and
//! handlers are polled by hyper. `tokio_limits` is what a careful program on tokio has: a timer for heads, and a
//! task per request, so that a handler outlives a client that hangs up.

use std::convert::Infallible;
use std::net;
use std::time::Duration;

use bytes::Bytes;
use convoke::driver::io_context;
use convoke::net::TcpListener;
use convoke::runtime::Runtime;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

use super::on_cores::{CoresServer, compute};
use crate::echo::Transport;
use crate::scenario::CONVOKE;

/// A server on one core.
#[derive(Clone, Copy)]
pub(in crate::echo) struct HttpServer {
    pub(in crate::echo) peer: &'static str,
    pub(in crate::echo) serve: fn(net::TcpListener, Transport),
}

pub(super) const SERVERS: [HttpServer; 3] = [
    HttpServer { peer: CONVOKE, serve: on_convoke },
    HttpServer { peer: "tokio", serve: |listener, http| on_tokio(listener, http, Care::Bare) },
    HttpServer { peer: "tokio_limits", serve: |listener, http| on_tokio(listener, http, Care::Limits) },
];

pub(super) const ON_CORES: [CoresServer; 4] = [
    CoresServer { peer: CONVOKE, cores: 2, serve: compute_on_convoke },
    CoresServer { peer: "convoke_1_core", cores: 1, serve: compute_on_convoke },
    CoresServer { peer: "tokio", cores: 2, serve: compute_on_tokio },
    CoresServer { peer: "tokio_1_core", cores: 1, serve: compute_on_tokio },
];

type Answer = Result<Response<Full<Bytes>>, Infallible>;

fn hello() -> Answer {
    Ok(Response::new(Full::new(Bytes::from_static(b"hello"))))
}

fn compute_hello() -> Answer {
    compute(b"hello");
    hello()
}

fn on_convoke(listener: net::TcpListener, _: Transport) {
    let ended = io_context().expect("an I/O context starts").block_on(async move {
        let listener = TcpListener::from_std(listener)?;
        convoke_http::serve(listener, async |_| hello()).await
    });
    panic!("the server does not end, but it did: {ended:?}");
}

fn compute_on_convoke(listener: net::TcpListener, _: usize, cores: usize) {
    let runtime = Runtime::builder().contexts(cores).build().expect("a runtime starts");
    let ended = runtime.block_on(async move {
        let listener = TcpListener::from_std(listener)?;
        convoke_http::serve(listener, async |_| compute_hello()).await
    });
    panic!("the server does not end, but it did: {ended:?}");
}

/// The care that a program on tokio takes of itself.
#[derive(Clone, Copy)]
enum Care {
    Bare,
    Limits,
}

fn on_tokio(listener: net::TcpListener, http: Transport, care: Care) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a tokio run loop starts");
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("tokio takes the listener");
        loop {
            let (stream, _) = listener.accept().await.expect("a connection is accepted");
            let _ = stream.set_nodelay(true);
            tokio::spawn(converse(stream, http, care));
        }
    });
}

async fn converse(stream: tokio::net::TcpStream, http: Transport, care: Care) {
    let io = TokioIo::new(stream);
    let bare = service_fn(async |_: Request<Incoming>| hello());
    let spawned = service_fn(async |_: Request<Incoming>| {
        tokio::spawn(async { hello() }).await.expect("the handler does not panic")
    });
    // A client that hangs up ends the connection with an error, which is no news.
    let _ = match (http, care) {
        (Transport::Http2, Care::Bare) => {
            http2::Builder::new(TokioExecutor::new()).serve_connection(io, bare).await
        }
        (Transport::Http2, Care::Limits) => {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder.timer(TokioTimer::new()).serve_connection(io, spawned).await
        }
        (_, Care::Bare) => http1::Builder::new().serve_connection(io, bare).await,
        (_, Care::Limits) => {
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(10));
            builder.serve_connection(io, spawned).await
        }
    };
}

fn compute_on_tokio(listener: net::TcpListener, _: usize, cores: usize) {
    let mut builder = match cores {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.worker_threads(cores).enable_io().build().expect("a tokio runtime starts");
    let accepts = async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("tokio takes the listener");
        loop {
            let (stream, _) = listener.accept().await.expect("a connection is accepted");
            let _ = stream.set_nodelay(true);
            let answering = service_fn(async |_: Request<Incoming>| compute_hello());
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answering));
        }
    };
    runtime.block_on(async { tokio::spawn(accepts).await.expect("the server does not panic") });
}
