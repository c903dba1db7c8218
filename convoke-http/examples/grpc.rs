//! gRPC with tonic, without its transport and so without a runtime of tokio's: the server is a service of tower, the channel of the
//! client is ours. Calls of three kinds: one answer, a stream of answers, streams in both directions. And a call whose client gives
//! up: its clean-up is awaited.
//!
//! Messages and routes are written by hand here. What `tonic-prost-build` generates is used in the same way, with
//! `tower(GreeterServer::new(greeter))` and `GreeterClient::with_origin(channel, origin)`.
//!
//! ```text
//! cargo run -p convoke-http --features tower,client --example grpc
//! ```

use std::convert::Infallible;
use std::future::IntoFuture;
use std::net::SocketAddr;
use std::time::Duration;

use convoke::net::TcpListener;
use convoke::prelude::*;
use convoke::sync::Event;
use convoke_http::{Client, Server, TowerBody, tower as from_tower};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use http::uri::PathAndQuery;
use tonic::body::Body;
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::service_fn;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Clone, PartialEq, prost::Message)]
struct Text {
    #[prost(string, tag = "1")]
    text: String,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct Number {
    #[prost(uint64, tag = "1")]
    number: u64,
}

/// Set when a call that waits has begun, and when it was cleaned up.
static BEGUN: Event = Event::new();
static CLEANED_UP: Event = Event::new();

async fn greet(request: Request<Text>) -> Result<Response<Text>, Status> {
    match request.into_inner().text {
        name if name.is_empty() => Err(Status::invalid_argument("nobody has no name")),
        name => Ok(Response::new(Text { text: format!("hello {name}") })),
    }
}

/// Sends the numbers from 1 to the one that is asked for, one each millisecond.
async fn count(
    request: Request<Number>,
) -> Result<Response<impl Stream<Item = Result<Number, Status>>>, Status> {
    let last = request.into_inner().number;
    let numbers = stream::unfold(1, move |number| async move {
        sleep(Duration::from_millis(1)).await;
        (number <= last).then_some((Ok(Number { number }), number + 1))
    });
    Ok(Response::new(numbers))
}

/// Answers each number with the sum of all so far, while more are sent.
async fn add(
    request: Request<Streaming<Number>>,
) -> Result<Response<impl Stream<Item = Result<Number, Status>>>, Status> {
    let sums = stream::try_unfold((request.into_inner(), 0), |(mut numbers, sum)| async move {
        let Some(Number { number }) = numbers.message().await? else { return Ok(None) };
        Ok(Some((Number { number: sum + number }, (numbers, sum + number))))
    });
    Ok(Response::new(sums))
}

/// Never answers. Its clean-up is awaited when the client has given up.
async fn wait(_: Request<Text>) -> Result<Response<Text>, Status> {
    let clean_up = async |exit: Exit| {
        sleep(Duration::from_millis(1)).await;
        println!("the call {exit}");
        CLEANED_UP.set();
    };
    let work = async {
        BEGUN.set();
        sleep(Duration::from_secs(3600)).await
    };
    ensure(clean_up, work).await;
    Err(Status::deadline_exceeded("an hour has passed"))
}

/// The routes of the service.
async fn greeter(request: http::Request<TowerBody>) -> Result<http::Response<Body>, Infallible> {
    macro_rules! grpc {
        ($kind:ident, $method:expr) => {
            tonic::server::Grpc::new(ProstCodec::default()).$kind(service_fn($method), request).await
        };
    }
    Ok(match request.uri().path() {
        "/example.Greeter/Greet" => grpc!(unary, greet),
        "/example.Greeter/Count" => grpc!(server_streaming, count),
        "/example.Greeter/Add" => grpc!(streaming, add),
        "/example.Greeter/Wait" => grpc!(unary, wait),
        _ => Status::unimplemented("there is no such method").into_http(),
    })
}

fn method(name: &'static str) -> PathAndQuery {
    PathAndQuery::from_static(name)
}

async fn talk(address: SocketAddr) -> Result<(), AnyError> {
    Client::builder()
        .http2_only()
        .run(async |client| {
            let channel = service_fn(move |request: http::Request<Body>| {
                let sending = client.request(request).send();
                async { sending.await.map(convoke_http::client::Response::into_http) }
            });
            let mut greeter = tonic::client::Grpc::with_origin(channel, format!("http://{address}").parse()?);

            let text = |text: &str| Request::new(Text { text: text.to_owned() });
            let codec = ProstCodec::<Text, Text>::default;
            let answer = greeter.unary(text("Ada"), method("/example.Greeter/Greet"), codec()).await?;
            println!("{}", answer.get_ref().text);
            assert_eq!(answer.get_ref().text, "hello Ada");
            let refusal = greeter.unary(text(""), method("/example.Greeter/Greet"), codec()).await;
            assert_eq!(refusal.unwrap_err().code(), tonic::Code::InvalidArgument);
            let unknown = greeter.unary(text(""), method("/example.Greeter/Sing"), codec()).await;
            assert_eq!(unknown.unwrap_err().code(), tonic::Code::Unimplemented);

            let numbers = |answers: Streaming<Number>| answers.map_ok(|it| it.number).try_collect::<Vec<_>>();
            let codec = ProstCodec::<Number, Number>::default;
            let last = Request::new(Number { number: 5 });
            let counted = greeter.server_streaming(last, method("/example.Greeter/Count"), codec()).await?;
            let counted = numbers(counted.into_inner()).await?;
            println!("counted {counted:?}");
            assert_eq!(counted, [1, 2, 3, 4, 5]);

            let summands = Request::new(stream::iter([1, 10, 100]).map(|number| Number { number }));
            let sums = greeter.streaming(summands, method("/example.Greeter/Add"), codec()).await?;
            let sums = numbers(sums.into_inner()).await?;
            println!("added {sums:?}");
            assert_eq!(sums, [1, 11, 111]);

            let codec = ProstCodec::<Text, Text>::default();
            let waiting = greeter.unary::<_, Text, _>(text(""), method("/example.Greeter/Wait"), codec);
            let gives_up = race((async { waiting.await.is_err() }, async {
                BEGUN.wait().await;
                true
            }));
            assert!(gives_up.await, "nobody is answered");
            CLEANED_UP.wait().await;
            Ok(())
        })
        .await
}

#[convoke::main]
async fn main() -> Result<(), AnyError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = Server::new(listener, from_tower(service_fn(greeter)));
    race((async { Ok(server.into_future().await?) }, talk(address))).await
}
