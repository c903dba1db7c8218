//! A client that speaks HTTP/2 frame by frame.

use std::future::Future;
use std::io;

use convoke::net::TcpStream;
use convoke::prelude::*;
use convoke_http::{Limits, RequestBody, serve};
use http::{Request, Response};
use http_body_util::BodyExt;

use crate::harness::{beside, listener, seconds, simulated};

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const END_STREAM: u8 = 1;
pub(super) const ACK: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
pub(super) const PADDED: u8 = 8;

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The pseudo-header of a request, of HPACK's static table: `GET`, `http`, `/`. The path of `WAIT` is `/wait`.
pub(super) const GET: &[u8] = b"\x82\x86\x84\x41\x01s";
pub(super) const POST: &[u8] = b"\x83\x86\x84\x41\x01s";
pub(super) const WAIT: &[u8] = b"\x83\x86\x04\x05/wait\x41\x01s";

/// The names of error codes (RFC 9113, 7).
const CODES: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

/// Makes a frame.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Makes a setting.
pub(super) fn setting(name: u16, value: u32) -> Vec<u8> {
    [&name.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

/// Makes a field, as a literal that is not stored.
pub(super) fn field(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0, name.len().try_into().unwrap()];
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(value.len().try_into().unwrap());
    bytes.extend_from_slice(value.as_bytes());
    bytes
}

/// A frame that was received.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) payload: Vec<u8>,
}

impl Frame {
    fn code(&self, at: usize) -> &'static str {
        let code = self.payload[at..].first_chunk().copied().map(u32::from_be_bytes);
        CODES[code.unwrap() as usize]
    }

    /// Returns what it says, as far as a test wants to know.
    pub(super) fn says(&self) -> Option<String> {
        let stream = self.stream;
        match self.kind {
            DATA => Some(format!("data {stream} {}", self.payload.escape_ascii())),
            HEADERS => Some(match self.payload[..] {
                [0x88, ..] => format!("200 {stream}"),
                [0x8c, ..] => format!("400 {stream}"),
                _ => format!("headers {stream} {:x?}", self.payload),
            }),
            RST_STREAM => Some(format!("reset {stream} {}", self.code(0))),
            GOAWAY => Some(format!("goaway {}", self.code(4))),
            _ => None,
        }
    }
}

/// A connection.
pub(super) struct Peer {
    pub(super) stream: TcpStream,
    received: Vec<u8>,
}

impl Peer {
    /// Opens a connection, without a word.
    pub(super) async fn silent() -> io::Result<Self> {
        Ok(Self { stream: TcpStream::connect("127.0.0.1:80").await?, received: Vec::new() })
    }

    /// Opens a connection, and exchanges settings.
    pub(super) async fn connect(settings: &[u8]) -> io::Result<Self> {
        let mut peer = Self::silent().await?;
        peer.send(&[PREFACE, &frame(SETTINGS, 0, 0, settings)].concat()).await;
        let first = peer.frame().await.unwrap();
        assert_eq!(
            (first.kind, first.flags, first.stream),
            (SETTINGS, 0, 0),
            "the server begins with its settings"
        );
        peer.send(&frame(SETTINGS, ACK, 0, &[])).await;
        loop {
            let next = peer.frame().await.unwrap();
            if (next.kind, next.flags) == (SETTINGS, ACK) {
                return Ok(peer);
            }
        }
    }

    /// Sends bytes. The server may have closed the connection.
    pub(super) async fn send(&self, bytes: &[u8]) {
        _ = self.stream.write_all(bytes).await;
    }

    /// Receives a frame; `None` at the end of the connection.
    pub(super) async fn frame(&mut self) -> Option<Frame> {
        loop {
            if let Some((&[a, b, c, kind, flags, w, x, y, z], rest)) = self.received.split_first_chunk() {
                let length = u32::from_be_bytes([0, a, b, c]) as usize;
                if let Some(payload) = rest.get(..length) {
                    let stream = u32::from_be_bytes([w, x, y, z]);
                    let frame = Frame { kind, flags, stream, payload: payload.to_vec() };
                    self.received.drain(..9 + length);
                    return Some(frame);
                }
            }
            if !matches!(self.stream.read_buf(&mut self.received).await, Ok(1..)) {
                return None;
            }
        }
    }

    /// Returns what the server says until it answers a ping, or until it closes the connection, which is `"closed"`.
    pub(super) async fn says(&mut self) -> Vec<String> {
        const MARK: &[u8] = b"the end!";
        // All that is being answered is answered before.
        sleep(seconds(1)).await;
        self.send(&frame(PING, 0, 0, MARK)).await;
        let mut said = Vec::new();
        while let Some(frame) = self.frame().await {
            if (frame.kind, frame.flags) == (PING, ACK) && frame.payload == MARK {
                return said;
            }
            said.extend(frame.says());
        }
        said.push("closed".to_owned());
        said
    }
}

/// Answers with the length of the body, and at `/wait` after ten seconds.
pub(super) async fn length(request: Request<RequestBody>) -> io::Result<Response<String>> {
    if request.uri().path() == "/wait" {
        sleep(seconds(10)).await;
    }
    Ok(Response::new(request.into_body().collect().await?.to_bytes().len().to_string()))
}

/// Runs a client beside a server that answers with `length`.
pub(super) fn with_server<F>(client: impl Fn() -> F)
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    simulated(|| {
        let client = client();
        async {
            beside(serve(listener().await?, length).limits(Limits::new().streams(3)).report(|_| ()), client)
                .await
        }
    });
}

/// Sends frames on a new connection, and checks all that the server says then.
#[track_caller]
pub(super) fn check(frames: &[&[u8]], expected: &[&str]) {
    let frames = frames.concat();
    let expected: Vec<_> = expected.iter().map(|&line| line.to_owned()).collect();
    with_server(|| {
        let (frames, expected) = (frames.clone(), expected.clone());
        async move {
            let mut peer = Peer::connect(&[]).await?;
            peer.send(&frames).await;
            let said = peer.says().await;
            assert_eq!(said, expected, "after {}", frames.escape_ascii());
            Ok(())
        }
    });
}

/// Checks that frames end the connection with an error.
#[track_caller]
pub(super) fn fails(frames: &[&[u8]], code: &str) {
    check(frames, &[&format!("goaway {code}"), "closed"]);
}

/// Checks that frames end the connection with an error, where hyper says `PROTOCOL_ERROR` instead of the code that the RFC demands. The
/// client is told no less that it is at fault.
#[track_caller]
pub(super) fn fails_without(_demanded: &str, frames: &[&[u8]]) {
    fails(frames, "PROTOCOL_ERROR");
}
