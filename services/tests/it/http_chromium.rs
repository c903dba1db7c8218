//! A browser against our server: a page that uses server-sent events, a WebSocket and requests over kept connections. When the server
//! is asked to stop, an open page does not keep it alive.

use std::collections::BTreeSet;
use std::future::IntoFuture;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{env, fs, io, process};

use async_tungstenite::WebSocketStream;
use async_tungstenite::tungstenite::handshake::server::create_response_with_body;
use async_tungstenite::tungstenite::protocol::Role;
use async_tungstenite::tungstenite::{Error, Message};
use convoke::net::TcpListener;
use convoke::prelude::*;
use convoke::sync::Event;
use convoke::time::interval;
use convoke_http::{Connection, Report, RequestBody, StreamedBody, Upgraded, serve, streamed, upgrade};
use convoke_services::service;
use futures_util::StreamExt;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Either, Full};

/// Does all that, and then tells what it has seen. Its events and its WebSocket stay open.
const PAGE: &str = r#"<!doctype html><title>convoke</title><script>
const event = new Promise(resolve => {
    new EventSource("/events").addEventListener("tick", tick => tick.data == "3" && resolve(tick.data));
});
const echo = new Promise(resolve => {
    const socket = new WebSocket(`ws://${location.host}/socket`);
    socket.onopen = () => socket.send("hello");
    socket.onmessage = message => resolve(message.data);
});
const fetched = (async () => {
    let text = "";
    for (let number = 0; number < 5; number++) text += await (await fetch("/number/" + number)).text();
    return text;
})();
Promise.all([event, echo, fetched]).then(seen => fetch("/seen", { method: "POST", body: seen.join(" ") }));
</script>"#;

/// The time that the browser may take to start and to load the page.
const START_TIME: Duration = Duration::from_secs(60);
/// The time that begun requests have after a stop.
const GRACE: Duration = Duration::from_secs(30);

type Body = Either<Full<bytes::Bytes>, StreamedBody>;

/// Messages that the server has received.
#[derive(Default)]
struct Heard {
    /// The report of the page, and an event that is set with it.
    seen: Mutex<String>,
    done: Event,
    /// The connections by which numbers were fetched.
    peers: Mutex<BTreeSet<String>>,
    reports: Mutex<Vec<String>>,
}

fn text(text: impl Into<bytes::Bytes>) -> Response<Body> {
    Response::new(Either::Left(Full::new(text.into())))
}

fn typed(mut response: Response<Body>, kind: &'static str) -> Response<Body> {
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

async fn answer(heard: Arc<Heard>, mut request: Request<RequestBody>) -> io::Result<Response<Body>> {
    let connection = Connection::current().ok_or_else(|| io::Error::other("no connection"))?;
    let path = request.uri().path().to_owned();
    Ok(match path.as_str() {
        "/" => typed(text(PAGE), "text/html"),
        "/events" => typed(Response::new(Either::Right(events(connection))), "text/event-stream"),
        "/socket" => {
            let answer = create_response_with_body(&request, || Either::Left(Full::default()));
            upgrade(&mut request, echo).map_err(io::Error::other)?;
            answer.map_err(io::Error::other)?
        }
        "/seen" => {
            let seen = request.into_body().collect().await?.to_bytes();
            *heard.seen.lock().unwrap() = String::from_utf8_lossy(&seen).into_owned();
            heard.done.set();
            text("")
        }
        path => match path.strip_prefix("/number/") {
            Some(number) => {
                heard.peers.lock().unwrap().insert(connection.peer().to_string());
                text(number.to_owned())
            }
            None => text(""),
        },
    })
}

/// Events, until the client goes or the server drains.
fn events(connection: Connection) -> StreamedBody {
    streamed(async move |body| {
        let mut ticks = interval(Duration::from_millis(10));
        for number in 1.. {
            ticks.tick().await;
            if connection.drain().has_begun() {
                break;
            }
            body.send(format!("event: tick\ndata: {number}\n\n")).await?;
        }
        io::Result::Ok(())
    })
}

/// Returns each message. What is open when the server ends is closed.
async fn echo(stream: Upgraded) -> Result<(), Error> {
    let socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
    using(Socket(socket), async |mut socket| {
        while let Some(message) = socket.0.next().await {
            if let message @ Message::Text(_) = message? {
                socket.0.send(message).await?;
            }
        }
        Ok(())
    })
    .await
}

struct Socket(WebSocketStream<Upgraded>);

impl AsyncClose for Socket {
    type Error = Never;

    async fn close(mut self, _: Exit) -> Result<(), Never> {
        // One that is closed, or whose client has gone, cannot be closed.
        _ = self.0.close(None).await;
        Ok(())
    }
}

/// A browser with a profile of its own, which is removed.
struct Browser {
    process: Child,
    profile: PathBuf,
}

impl Browser {
    fn open(address: SocketAddr) -> io::Result<Self> {
        let profile = env::temp_dir().join(format!("convoke-chromium-{}", process::id()));
        let mut command = Command::new(service("CONVOKE_TEST_CHROMIUM"));
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]);
        command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
        command.arg(format!("--user-data-dir={}", profile.display())).arg(format!("http://{address}/"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { process: command.spawn()?, profile })
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Asked to end, it ends the processes that it has started.
        _ = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status();
        _ = self.process.wait();
        _ = fs::remove_dir_all(&self.profile);
    }
}

#[convoke::test]
async fn a_browser_sees_events_and_a_web_socket_and_does_not_keep_the_server_alive() {
    let heard = Arc::new(Heard::default());
    let (answering, reporting) = (heard.clone(), heard.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = serve(listener, move |request| answer(answering.clone(), request)).grace(GRACE).report(
        move |report: Report| {
            if !report.is_about_client() {
                reporting.reports.lock().unwrap().push(report.to_string());
            }
        },
    );
    scope(async |s| {
        let server = s.spawn_future(server.into_future());
        let browser = Browser::open(address).unwrap();
        let seen = timeout(START_TIME, heard.done.wait()).await;
        assert!(seen.is_ok(), "the page has told nothing after {START_TIME:?}");
        assert_eq!(*heard.seen.lock().unwrap(), "3 hello 01234");
        assert!(heard.peers.lock().unwrap().len() < 5, "connections are used again");
        // The page is open, with its events and its WebSocket, and kept connections.
        server.request_stop(StopReason::Shutdown);
        assert!(catch_stopped(server).await.is_err(), "a server ends stopped");
        drop(browser);
    })
    .await;
    // A request that outlives the grace period is reported.
    assert_eq!(*heard.reports.lock().unwrap(), [""; 0]);
}
