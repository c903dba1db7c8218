//! An HTTP client whose connections are children of a scope: when it ends, nothing of it is left.
//!
//! ```
//! use std::io;
//! use convoke::prelude::*;
//! use convoke::sim::Sim;
//! use convoke_http::{Client, RequestBody, serve};
//! use http::{Request, Response};
//!
//! async fn hello(request: Request<RequestBody>) -> io::Result<Response<String>> {
//!     Ok(Response::new(format!("hello {}", request.uri().path())))
//! }
//!
//! async fn fetch() -> io::Result<()> {
//!     Client::run(async |client| {
//!         let request = client.get("http://server/you").header("accept", "text/plain");
//!         let response = request.send().await?;
//!         assert!(response.status().is_success());
//!         assert_eq!(response.text().await?, "hello /you");
//!         Ok(())
//!     })
//!     .await
//! }
//!
//! // The same program runs on a real network.
//! let mut sim = Sim::new(1);
//! sim.host("server").daemon().run(async || serve("0.0.0.0:80", hello).await);
//! sim.host("client").run(fetch);
//! sim.run();
//! ```
//!
//! For `https`, [`Client::https`] trusts what the operating system trusts (feature `tls-system-roots`), and
//! [`ClientBuilder::tls`] takes a connector of `convoke-tls` with authorities of your own (feature `tls`).
//!
//! # The life of a client
//!
//! [`Client::run`] opens a scope for the connections, runs a body with a [`Client`], and closes it. The client can be cloned
//! and shared by all tasks below the body: put it into the state of a router. When the body has ended, idle connections close,
//! requests of clones that were kept elsewhere have a [grace period](ClientBuilder::grace), and later ones fail.
//!
//! A stop of the task reaches requests, and not connections: clean-up that is awaited inside the body can still use the client.
//!
//! # A request
//!
//! | step | limit | default |
//! | --- | --- | --- |
//! | wait for a connection | [`wait_time`](ClientBuilder::wait_time), [`waiting`](ClientBuilder::waiting) requests | 30 s, 4096 |
//! | look up the name, connect | [`connect_time`](ClientBuilder::connect_time) | 10 s |
//! | TLS handshake | [`tls_time`](ClientBuilder::tls_time) | 10 s |
//! | head of the response | [`head_time`](ClientBuilder::head_time), [`head_bytes`](ClientBuilder::head_bytes) | 60 s, 64 KiB |
//! | body of the response | [`body_idle_time`](ClientBuilder::body_idle_time), [`collected_bytes`](ClientBuilder::collected_bytes) | 30 s, 16 MiB |
//! | all of it | [`total_time`](ClientBuilder::total_time), and the deadline of the task | none |
//!
//! A request that is stopped at any of them leaves no trace: by HTTP/1 its connection is closed, by HTTP/2 its stream is reset,
//! and no other request gets what was meant for it. An error tells the [step](Phase) and whether the server
//! [may have processed](ClientError::may_have_been_processed) the request.

// The parts:
//
// - `options`: the builder. `running`: the scope of a client. `request`: the builder of a request. `response`: the response and its
//   body.
// - `send`: one request with its retries and redirects (`redirect`). `exchange`: one attempt of it, over one connection.
// - `pool`: which connection. `places`: where it runs. `connection`: the task of a connection. `tls`, `tunnel`: how one is opened.
// - `origin`, `route`, `proxy`, `basic`: where a request goes. `payload`, `query`: what it carries. `error`: how it fails.

mod alarm;
mod basic;
mod connection;
mod error;
mod exchange;
mod options;
mod origin;
mod payload;
mod places;
mod pool;
mod proxy;
mod query;
mod redirect;
mod request;
mod response;
mod route;
mod running;
mod send;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod tls;
mod tunnel;

pub use error::{ClientError, Phase};
pub use options::{
    BODY_IDLE_TIME, COLLECTED_BYTES, CONNECT_TIME, CONNECTIONS, CONNECTIONS_PER_ORIGIN, ClientBuilder, GRACE,
    HEAD_BYTES, HEAD_TIME, IDLE_PER_ORIGIN, IDLE_TIME, REDIRECTS, STREAMS, TLS_TIME, WAIT_TIME, WAITING,
};
pub use origin::Origin;
pub use payload::Payload;
pub use proxy::Proxy;
pub use request::{RequestBuilder, Sending};
pub use response::{Response, ResponseBody};
pub use running::Running;

use core::fmt;
use core::future::Future;
use std::sync::Arc;

use convoke_sync::Event;
use http::{Method, Request, Uri};
use hyper::body::Body;

use crate::report::AnyError;
use connection::run_connection;
use options::Options;
use places::Places;
use pool::{Openings, Pool};

/// An HTTP client with a pool of connections. Clones share it.
///
/// See the [module](self) for its life and its limits.
#[derive(Clone)]
pub struct Client {
    shared: Arc<SharedClient>,
}

/// The part of a client that its clones and its connections share.
struct SharedClient {
    pool: Arc<Pool>,
    options: Options,
    places: Places,
    /// Set when the client is closed.
    closing: Event,
}

impl Client {
    /// Returns a builder to configure limits, TLS, proxies and retries.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    /// Returns a builder with TLS, which trusts the authorities that the operating system trusts. It reads files: call it
    /// once.
    ///
    /// # Errors
    /// Fails if the system has no certificates.
    ///
    /// ```no_run
    /// use std::io;
    /// use convoke_http::Client;
    ///
    /// async fn page() -> io::Result<String> {
    ///     Client::https()?
    ///         .run(async |client| Ok(client.get("https://example.com/").send().await?.text().await?))
    ///         .await
    /// }
    /// ```
    #[cfg(feature = "tls-system-roots")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls-system-roots")))]
    pub fn https() -> std::io::Result<ClientBuilder> {
        let connector = convoke_tls::TlsConnector::new(convoke_tls::Roots::system()?)?;
        Ok(Self::builder().tls(&connector))
    }

    /// Runs a body with a client that has the default options, and closes the client.
    ///
    /// - *Completes with* the output of the body, when all connections have ended. Stopped, if the body was.
    /// - *If dropped*, the body is dropped, connections end within the grace period, and the task waits for them at its
    ///   end.
    /// - *Runs on* the current task. Connections run on the contexts of its runtime, each where it was first needed.
    /// - *Panics* with the panic of the body; and if it is called outside a task.
    ///
    /// ```
    /// use convoke_http::{Client, ClientError};
    ///
    /// async fn page(uri: &str) -> Result<String, ClientError> {
    ///     Client::run(async |client| client.get(uri).send().await?.text().await).await
    /// }
    /// ```
    #[track_caller]
    pub fn run<B, F>(body: B) -> Running<F>
    where
        B: FnOnce(Self) -> F,
        F: Future,
    {
        Self::builder().run(body)
    }

    /// Returns a builder for a GET request. A URI that is malformed is an error when the request is sent.
    pub fn get<U: TryInto<Uri, Error: Into<http::Error>>>(&self, uri: U) -> RequestBuilder {
        self.method(Method::GET, uri)
    }

    /// Returns a builder for a HEAD request.
    pub fn head<U: TryInto<Uri, Error: Into<http::Error>>>(&self, uri: U) -> RequestBuilder {
        self.method(Method::HEAD, uri)
    }

    /// Returns a builder for a POST request.
    pub fn post<U: TryInto<Uri, Error: Into<http::Error>>>(&self, uri: U) -> RequestBuilder {
        self.method(Method::POST, uri)
    }

    /// Returns a builder for a PUT request.
    pub fn put<U: TryInto<Uri, Error: Into<http::Error>>>(&self, uri: U) -> RequestBuilder {
        self.method(Method::PUT, uri)
    }

    /// Returns a builder for a PATCH request.
    pub fn patch<U: TryInto<Uri, Error: Into<http::Error>>>(&self, uri: U) -> RequestBuilder {
        self.method(Method::PATCH, uri)
    }

    /// Returns a builder for a DELETE request.
    pub fn delete<U: TryInto<Uri, Error: Into<http::Error>>>(&self, uri: U) -> RequestBuilder {
        self.method(Method::DELETE, uri)
    }

    /// Returns a builder for a request with any method.
    pub fn method<U: TryInto<Uri, Error: Into<http::Error>>>(
        &self,
        method: Method,
        uri: U,
    ) -> RequestBuilder {
        RequestBuilder::new(self.shared.clone(), method, uri)
    }

    /// Returns a builder that sends this request. Its URI must be absolute. A body of text or of bytes can be sent again; any
    /// other is a stream.
    ///
    /// ```
    /// use convoke_http::{Client, ClientError, RequestBody};
    /// use convoke_http::client::ResponseBody;
    /// use http::{Request, Response};
    ///
    /// /// Passes a request of a server on, and the response back, while their bodies arrive.
    /// async fn forward(
    ///     client: Client,
    ///     request: Request<RequestBody>,
    /// ) -> Result<Response<ResponseBody>, ClientError> {
    ///     Ok(client.request(request).send().await?.into_http())
    /// }
    /// ```
    pub fn request<B>(&self, request: Request<B>) -> RequestBuilder
    where
        B: Body<Data: Send, Error: Into<AnyError>> + Send + 'static,
    {
        RequestBuilder::from_http(self.shared.clone(), request)
    }

    /// Returns the number of connections, with those that are being opened.
    pub fn connections(&self) -> usize {
        self.shared.pool.counts().0
    }

    /// Returns the number of connections that no request uses.
    pub fn idle_connections(&self) -> usize {
        self.shared.pool.counts().1
    }

    /// Returns the number of requests that wait for a connection.
    pub fn waiting_requests(&self) -> usize {
        self.shared.pool.counts().2
    }
}

impl SharedClient {
    /// Starts the tasks of connections.
    fn open_all(self: &Arc<Self>, openings: Openings) {
        for (route, place) in openings.routes {
            let name = format!("connection to {route}");
            let connection = run_connection(self.clone(), route.clone(), place);
            let is_started = openings.scope.as_ref().is_some_and(|scope| match self.places.executor(place) {
                Some(executor) => scope.named(name).on(executor).try_spawn(connection).is_ok(),
                None => scope.named(name).try_spawn(connection).is_ok(),
            });
            if !is_started {
                let error = ClientError::new(Phase::Wait, error::Cause::Closed);
                // The scope has ended, so there is nothing to open.
                drop(self.pool.not_opened(&route, &error));
            }
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (connections, idle, waiting) = self.shared.pool.counts();
        f.debug_struct("Client")
            .field("connections", &connections)
            .field("idle", &idle)
            .field("waiting", &waiting)
            .finish_non_exhaustive()
    }
}
