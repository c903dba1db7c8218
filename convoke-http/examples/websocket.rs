//! WebSockets by upgrade, with tungstenite. When the server is asked to stop, each conversation says good bye: a close frame is
//! sent, and the answer to it awaited, before the server has ended.
//!
//! ```text
//! cargo run -p convoke-http --example websocket
//! ```

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use async_tungstenite::tungstenite::handshake::server::create_response_with_body;
use async_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use async_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use async_tungstenite::tungstenite::{Error, Message};
use async_tungstenite::{WebSocketStream, client_async};
use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke_http::{RequestBody, Upgraded, serve, upgrade};
use futures::StreamExt;
use http::{Request, Response, StatusCode};

/// The largest message that a client may send, and the time that it may take to answer a close frame.
const MESSAGE_BYTES: usize = 64 * 1024;
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// A conversation. However it ends, it is closed with a code that says why.
struct Conversation(WebSocketStream<Upgraded>);

impl AsyncClose for Conversation {
    type Error = Error;

    async fn close(mut self, exit: Exit) -> Result<(), Error> {
        let (code, reason) = match exit {
            _ if exit.is_clean() => (CloseCode::Normal, "as you wish"),
            Exit::Stopped(_) => (CloseCode::Away, "the server ends"),
            _ => (CloseCode::Error, "something went wrong"),
        };
        match self.0.close(Some(CloseFrame { code, reason: reason.into() })).await {
            Ok(()) => {}
            // The client was the first to close.
            Err(Error::ConnectionClosed | Error::AlreadyClosed) => return Ok(()),
            Err(error) => return Err(error),
        }
        // Until the client has said the same. One that does not answer keeps nobody waiting.
        _ = timeout(CLOSE_TIME, async { while let Some(Ok(_)) = self.0.next().await {} }).await;
        println!("closed: {reason}");
        Ok(())
    }
}

/// Answers the handshake. The conversation is a child of the connection: it hears a stop of the server at once.
async fn handshake(mut request: Request<RequestBody>) -> io::Result<Response<String>> {
    let Ok(answer) = create_response_with_body(&request, String::new) else {
        let mut refusal = Response::new("this is a WebSocket\n".to_owned());
        *refusal.status_mut() = StatusCode::BAD_REQUEST;
        return Ok(refusal);
    };
    upgrade(&mut request, echo).map_err(io::Error::other)?;
    Ok(answer)
}

/// Returns each message to the client.
async fn echo(stream: Upgraded) -> Result<(), Error> {
    let config = WebSocketConfig::default().max_message_size(Some(MESSAGE_BYTES));
    let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
    using(Conversation(socket), async |mut conversation| {
        while let Some(message) = conversation.0.next().await {
            // tungstenite answers pings, and a close frame, after which there is no next message.
            if let message @ (Message::Text(_) | Message::Binary(_)) = message? {
                conversation.0.send(message).await?;
            }
        }
        Ok(())
    })
    .await
}

/// A client, connected.
async fn connect(address: SocketAddr) -> Result<WebSocketStream<TcpStream>, Error> {
    let stream = TcpStream::connect(address).await?;
    Ok(client_async(format!("ws://{address}/echo"), stream).await?.0)
}

/// Sends a message, and expects it back.
async fn talk(socket: &mut WebSocketStream<TcpStream>, text: &str) -> Result<(), Error> {
    socket.send(Message::text(text)).await?;
    let answer = socket.next().await.ok_or(Error::ConnectionClosed)??;
    println!("the server says {answer:?}");
    assert_eq!(answer, Message::text(text));
    Ok(())
}

/// Reads until the server closes, and returns the code that it gives.
async fn farewell(mut socket: WebSocketStream<TcpStream>) -> Result<Option<CloseCode>, Error> {
    let mut code = None;
    while let Some(message) = socket.next().await {
        if let Message::Close(frame) = message? {
            code = frame.map(|frame| frame.code);
        }
    }
    Ok(code)
}

#[convoke::main]
async fn main() -> Result<(), Error> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    scope(async |s| {
        let server = s.spawn_future(async { serve(listener, handshake).await });
        let (mut patient, mut hasty) = (connect(address).await?, connect(address).await?);
        for text in ["one", "two", "three"] {
            talk(&mut patient, text).await?;
        }
        talk(&mut hasty, "only this").await?;
        hasty.close(None).await?;
        farewell(hasty).await?;
        // The other one is in the middle of its conversation when the server is asked to stop.
        server.request_stop(StopReason::Shutdown);
        let (ended, code) = join((catch_stopped(server), farewell(patient))).await;
        assert!(ended.is_err(), "a server ends stopped, and here when all conversations are closed");
        assert_eq!(code?, Some(CloseCode::Away));
        Ok(())
    })
    .await
}
