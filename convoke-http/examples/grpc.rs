//! gRPC with tonic, without its transport: the server is a service of tower, the client's channel is ours. A call of each kind: one
//! answer, a stream of answers, streams in both directions. And a client that gives up: the clean-up of its call is awaited.
//!
//! The messages are written in Rust. With `tonic-prost-build` they and the routing of `Greeter` are generated from a `.proto` file,
//! which needs `protoc`.
//!
//! ```text
//! cargo run -p convoke-http --features tower,client --example grpc
//! ```

use std::convert::Infallible;
use std::future::IntoFuture;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use convoke::net::TcpListener;
use convoke::prelude::*;
use convoke::sync::mpsc;
use convoke_http::client::ResponseBody;
use convoke_http::{Client, ClientError, Server, tower as from_tower};
use futures::{Stream, StreamExt, stream};
use http::uri::PathAndQuery;
use tonic::client;
use tonic::codegen::{Body as HttpBody, StdError};
use tonic::server::{Grpc, ServerStreamingService, StreamingService, UnaryService};
use tonic::{Code, Request, Response, Status, Streaming, body::Body};
use tonic_prost::ProstCodec;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
