//! Hyper's traits on Convoke: streams, timers, an executor, and a connector of tower. For code that drives hyper's connections itself;
//! [`Server`](crate::Server) does so with these.
//!
//! ```
//! use convoke::net::TcpStream;
//! use convoke::prelude::*;
//! use convoke_http::rt::{ConvokeTimer, HyperIo, ScopeExecutor};
//! use http::{Request, Response};
//! use hyper::server::conn::http2;
//! use hyper::service::service_fn;
//!
//! /// Serves one connection by HTTP/2. The tasks of its streams are children of the scope.
//! async fn one_connection(stream: TcpStream) -> hyper::Result<()> {
//!     scope(async |s| {
//!         let hello = service_fn(async |_: Request<hyper::body::Incoming>| {
//!             Ok::<_, std::io::Error>(Response::new("hello".to_owned()))
//!         });
//!         http2::Builder::new(ScopeExecutor::new(s))
//!             .timer(ConvokeTimer)
//!             .serve_connection(HyperIo::new(stream).vectored(true), hello)
//!             .await
//!     })
//!     .await
//! }
//! ```

#[cfg(feature = "tower")]
mod connector;
mod executor;
mod futures_stream;
mod hyper_io;
mod timer;

#[cfg(feature = "tower")]
#[cfg_attr(docsrs, doc(cfg(feature = "tower")))]
pub use connector::Connector;
pub use executor::ScopeExecutor;
pub use futures_stream::FuturesStream;
pub use hyper_io::HyperIo;
pub use timer::ConvokeTimer;
