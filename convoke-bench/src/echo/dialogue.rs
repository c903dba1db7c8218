//! The dialogue of a connection: the message of the load, and the answer that must come back, an echo or HTTP.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use super::Transport;

/// The number of requests by HTTP/2 that a connection has at a time.
pub(crate) const STREAMS: usize = 8;

const HTTP1_REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: localhost\r\nuser-agent: bench\r\naccept: */*\r\n\r\n";

/// The preface of HTTP/2, settings without a change, and a window for the connection that is never used up.
const HTTP2_PREFACE: &[u8] =
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x04\x08\0\0\0\0\0\x7f\0\0\0";

/// The fields `:method GET`, `:scheme http`, `:path /` by their index, and `:authority: localhost`.
const HTTP2_HEAD: &[u8] = b"\x82\x86\x84\x01\x09localhost";

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The message of all connections, and the number of bytes that come back for it.
pub(super) struct Dialogue {
    pub(super) message: Vec<u8>,
    pub(super) kind: Kind,
}

/// The end of an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// It is the message.
    Echo,
    /// It has this many bytes.
    Http1 { length: usize },
    /// All streams of the message have ended.
    Http2,
}

impl Dialogue {
    pub(super) fn new(transport: Transport, port: u16, bytes: usize) -> io::Result<Self> {
        Ok(match transport {
            Transport::Http1 | Transport::HttpWork => Self {
                message: HTTP1_REQUEST.to_vec(),
                kind: Kind::Http1 { length: length_of_answer(port)? },
            },
            Transport::Http2 => Self { message: Vec::new(), kind: Kind::Http2 },
            Transport::Tcp | Transport::Udp | Transport::Work => {
                Self { message: (0..bytes).map(|index| (index % 251) as u8).collect(), kind: Kind::Echo }
            }
        })
    }

    /// Returns the size of the buffer for an answer.
    pub(super) fn answer_bytes(&self) -> usize {
        match self.kind {
            Kind::Echo => self.message.len(),
            Kind::Http1 { length } => length,
            Kind::Http2 => 16 * 1024,
        }
    }

    /// Returns the number of requests that one message is.
    pub(super) fn requests(&self) -> u64 {
        if self.kind == Kind::Http2 { STREAMS as u64 } else { 1 }
    }

    /// Makes the next message of a connection, where each message is another one.
    pub(super) fn next_message(&mut self, streams: &mut Streams) {
        if self.kind == Kind::Http2 {
            self.message.clear();
            streams.append_requests(&mut self.message);
        }
    }

    /// Returns true if these are the first bytes of an answer that is right.
    pub(super) fn accepts(&self, from: usize, bytes: &[u8]) -> bool {
        match self.kind {
            Kind::Echo => bytes == &self.message[from..from + bytes.len()],
            Kind::Http1 { .. } => {
                let right = &b"HTTP/1.1 200 OK\r\n"[..];
                from >= right.len() || right[from..].iter().zip(bytes).all(|(right, is)| right == is)
            }
            // The frames were parsed.
            Kind::Http2 => true,
        }
    }
}

/// Asks once, and returns the length of the answer. All answers of a server have the same.
fn length_of_answer(port: u16) -> io::Result<usize> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.write_all(HTTP1_REQUEST)?;
    let (mut answer, mut buffer) = (Vec::new(), [0; 1024]);
    loop {
        let read = stream.read(&mut buffer)?;
        answer.extend_from_slice(&buffer[..read]);
        if answer.ends_with(b"\r\n\r\nhello") {
            return Ok(answer.len());
        }
        if read == 0 {
            return Err(io::Error::other("the server does not say hello"));
        }
    }
}

/// The streams of a connection by HTTP/2, and the frame that is being received.
#[derive(Default)]
pub(super) struct Streams {
    /// Their number so far.
    begun: u32,
    /// The number of streams of the message that have ended.
    pub(super) ended: usize,
    head: [u8; 9],
    head_bytes: usize,
    rest_of_payload: usize,
}

impl Streams {
    fn append_requests(&mut self, message: &mut Vec<u8>) {
        if self.begun == 0 {
            message.extend_from_slice(HTTP2_PREFACE);
        }
        for _ in 0..STREAMS {
            let id = 2 * self.begun + 1;
            self.begun += 1;
            message.extend_from_slice(&[0, 0, HTTP2_HEAD.len() as u8, HEADERS, END_STREAM | END_HEADERS]);
            message.extend_from_slice(&id.to_be_bytes());
            message.extend_from_slice(HTTP2_HEAD);
        }
    }

    /// Parses bytes, and counts the streams that end in them.
    pub(super) fn receive(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.rest_of_payload > 0 {
                let skipped = self.rest_of_payload.min(bytes.len());
                self.rest_of_payload -= skipped;
                bytes = &bytes[skipped..];
                continue;
            }
            let wanted = (self.head.len() - self.head_bytes).min(bytes.len());
            self.head[self.head_bytes..][..wanted].copy_from_slice(&bytes[..wanted]);
            self.head_bytes += wanted;
            bytes = &bytes[wanted..];
            if self.head_bytes == self.head.len() {
                self.head_bytes = 0;
                let [a, b, c, kind, flags, ..] = self.head;
                self.rest_of_payload = u32::from_be_bytes([0, a, b, c]) as usize;
                if matches!(kind, RST_STREAM | GOAWAY) {
                    return Err(io::Error::other("the server has reset a stream"));
                }
                // Data (0) and headers (1) have that flag; on others it means something else.
                if kind <= HEADERS && flags & END_STREAM != 0 {
                    self.ended += 1;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_streams_are_counted_whatever_the_pieces() {
        // Settings, headers that do not end the stream, data that does, headers that do.
        let frames = b"\0\0\0\x04\0\0\0\0\0\0\0\x02\x01\x04\0\0\0\x01ab\0\0\x03\0\x01\0\0\0\x01abc\0\0\x01\x01\x05\0\0\0\x03a";
        for size in 1..frames.len() {
            let mut streams = Streams::default();
            for piece in frames.chunks(size) {
                streams.receive(piece).unwrap();
            }
            assert_eq!(streams.ended, 2, "in pieces of {size}");
        }
    }

    #[test]
    fn a_reset_is_an_error() {
        assert!(Streams::default().receive(b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08").is_err());
    }

    #[test]
    fn the_status_of_an_answer_is_compared_whatever_the_pieces() {
        let dialogue = Dialogue { message: Vec::new(), kind: Kind::Http1 { length: 100 } };
        assert!(dialogue.accepts(0, b"HTTP/1.1 2") && dialogue.accepts(9, b"200 OK\r\nany"));
        assert!(!dialogue.accepts(0, b"HTTP/1.1 5") && dialogue.accepts(30, b"any"));
    }
}
