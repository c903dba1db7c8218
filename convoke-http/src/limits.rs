//! The limits of a server: each has a name, and a default that is safe on the open Internet.

use core::time::Duration;

/// The default maximum number of requests that a server works on at a time.
pub const REQUESTS: usize = 16_384;
/// The default maximum size of the head of a request: request line and header fields.
pub const HEADER_BYTES: usize = 32 * 1024;
/// The default maximum number of header fields of a request.
pub const HEADERS: usize = 100;
/// The default time that the head of a request may take, from its first byte to its last.
pub const HEADER_TIME: Duration = Duration::from_secs(10);
/// The default maximum size of the body of a request.
pub const BODY_BYTES: u64 = 2 * 1024 * 1024;
/// The default time that the body of a request may take, from the end of the head to its last byte.
pub const BODY_TIME: Duration = Duration::from_secs(60);
/// The default time for which a connection without a request is kept open.
pub const IDLE_TIME: Duration = Duration::from_secs(60);
/// The default time for which a client may accept not a single byte of what is sent to it.
pub const WRITE_TIME: Duration = Duration::from_secs(30);
/// The default maximum number of requests at a time on one connection by HTTP/2.
pub const STREAMS: u32 = 100;

/// The default size of the window that a client has for the body of a request by HTTP/2: what it may send ahead of the handler.
pub const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// The default size of the window that all bodies of a connection by HTTP/2 have together.
pub const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
/// The default size of what a response by HTTP/2 may have ready for a client that does not take it.
pub const SEND_BYTES: usize = 64 * 1024;
/// The default time after which a client that is silent is asked whether it is still there.
pub const PROBE_TIME: Duration = Duration::from_secs(30);

/// The largest window of HTTP/2.
const LARGEST_WINDOW: u32 = (1 << 31) - 1;

/// The number of header fields that the type of HTTP's headers can hold.
const MOST_HEADERS: usize = 32_768;

/// The smallest buffer that hyper reads heads into.
const SMALLEST_BUFFER: usize = 8192;

/// Limits of what clients may ask of a server. Those of connections are set with
/// [`Server::connections`](crate::Server::connections).
///
/// `Duration::MAX`, `u64::MAX` and `usize::MAX` mean no limit, except for [`headers`](Limits::headers).
///
/// ```
/// use std::time::Duration;
/// use convoke_http::Limits;
///
/// let uploads = Limits::new().body_bytes(1 << 30).body_time(Duration::from_secs(3600));
/// # drop(uploads);
/// ```
#[derive(Clone, Debug)]
#[must_use = "limits do nothing until a server gets them"]
pub struct Limits {
    pub(crate) requests: usize,
    pub(crate) header_bytes: usize,
    pub(crate) headers: usize,
    pub(crate) header_time: Duration,
    pub(crate) body_bytes: u64,
    pub(crate) body_time: Duration,
    pub(crate) idle_time: Duration,
    pub(crate) write_time: Duration,
    pub(crate) streams: u32,
    pub(crate) stream_window_bytes: u32,
    pub(crate) connection_window_bytes: u32,
    pub(crate) send_bytes: usize,
    pub(crate) probe_time: Duration,
}

impl Limits {
    /// Creates the default limits.
    pub const fn new() -> Self {
        Self {
            requests: REQUESTS,
            header_bytes: HEADER_BYTES,
            headers: HEADERS,
            header_time: HEADER_TIME,
            body_bytes: BODY_BYTES,
            body_time: BODY_TIME,
            idle_time: IDLE_TIME,
            write_time: WRITE_TIME,
            streams: STREAMS,
            stream_window_bytes: STREAM_WINDOW_BYTES,
            connection_window_bytes: CONNECTION_WINDOW_BYTES,
            send_bytes: SEND_BYTES,
            probe_time: PROBE_TIME,
        }
    }

    /// Sets the maximum number of requests at a time, of all connections together: [`REQUESTS`] by default. A further
    /// one is answered with 503.
    pub const fn requests(mut self, requests: usize) -> Self {
        self.requests = requests;
        self
    }

    /// Sets the maximum size of the head of a request: [`HEADER_BYTES`] by default. A larger one is answered with 431.
    pub const fn header_bytes(mut self, bytes: usize) -> Self {
        self.header_bytes = bytes;
        self
    }

    /// Sets the maximum number of header fields of a request: [`HEADERS`] by default, and at most 32,768. A request with
    /// more is answered with 431. By HTTP/1 each request needs memory for that many.
    pub const fn headers(mut self, headers: usize) -> Self {
        self.headers = if headers < MOST_HEADERS { headers } else { MOST_HEADERS };
        self
    }

    /// Sets the time that the head of a request may take by HTTP/1: [`HEADER_TIME`] by default. A slower one is
    /// answered with 408, and its connection closed. By HTTP/2 a slow head is bounded by [`idle_time`](Self::idle_time), while
    /// no other request of its connection is under way.
    pub const fn header_time(mut self, time: Duration) -> Self {
        self.header_time = time;
        self
    }

    /// Sets the maximum size of the body of a request: [`BODY_BYTES`] by default. A request that announces more is
    /// answered with 413. If the size is not announced, reading beyond the limit is an
    /// [error](crate::BodyError), which is answered with 413 if the service returns it.
    pub const fn body_bytes(mut self, bytes: u64) -> Self {
        self.body_bytes = bytes;
        self
    }

    /// Sets the time that the body of a request may take: [`BODY_TIME`] by default. Reading later is an
    /// [error](crate::BodyError), which is answered with 408 if the service returns it.
    pub const fn body_time(mut self, time: Duration) -> Self {
        self.body_time = time;
        self
    }

    /// Sets the time for which a connection without a request is kept open: [`IDLE_TIME`] by default.
    pub const fn idle_time(mut self, time: Duration) -> Self {
        self.idle_time = time;
        self
    }

    /// Sets the time for which a client may accept not a single byte of what is sent to it: [`WRITE_TIME`] by
    /// default. Then its connection is closed, and its requests are asked to stop. By HTTP/2 the time also holds for each
    /// stream, and only that one is reset.
    pub const fn write_time(mut self, time: Duration) -> Self {
        self.write_time = time;
        self
    }

    /// Sets the maximum number of requests at a time on one connection by HTTP/2: [`STREAMS`] by default. Clients are
    /// told this number, and have to wait. There may be as many again that the client has reset and whose clean-up runs; a
    /// further request is then answered with 503.
    pub const fn streams(mut self, streams: u32) -> Self {
        self.streams = streams;
        self
    }

    /// Sets the number of bytes that a client may send of one request's body by HTTP/2 before the handler reads them:
    /// [`STREAM_WINDOW_BYTES`] by default. A larger one makes uploads over long distances faster.
    pub const fn stream_window_bytes(mut self, bytes: u32) -> Self {
        self.stream_window_bytes = if bytes < LARGEST_WINDOW { bytes } else { LARGEST_WINDOW };
        self
    }

    /// Sets the number of bytes that a client may send of the bodies of all requests of a connection by HTTP/2 before handlers
    /// read them: [`CONNECTION_WINDOW_BYTES`] by default, and at least 65,535, which HTTP/2 begins with. It bounds the
    /// memory that the connection takes for them.
    pub const fn connection_window_bytes(mut self, bytes: u32) -> Self {
        self.connection_window_bytes = if bytes < LARGEST_WINDOW { bytes } else { LARGEST_WINDOW };
        self
    }

    /// Sets the number of bytes that a response by HTTP/2 may have ready for a client that does not take them:
    /// [`SEND_BYTES`] by default, for each of its [`streams`](Self::streams). After that, the body is not asked for more. A
    /// chunk of the body is not divided.
    pub const fn send_bytes(mut self, bytes: usize) -> Self {
        self.send_bytes = bytes;
        self
    }

    /// Sets the time after which a client from which nothing is heard is asked whether it is still there: [`PROBE_TIME`] by
    /// default. So a request whose client has vanished, without a word, does not run for ever.
    ///
    /// By HTTP/2 the client is asked by a ping, and has the same time to answer. By HTTP/1 its system is asked (TCP keep-alive);
    /// how often that is repeated is an option of the server's system: nine times, every 75 seconds, on Linux.
    /// `Duration::MAX` turns both off.
    pub const fn probe_time(mut self, time: Duration) -> Self {
        self.probe_time = time;
        self
    }

    /// Returns the time after which a client is asked whether it is there, if it is asked.
    pub(crate) fn probes_after(&self) -> Option<Duration> {
        (self.probe_time != Duration::MAX).then_some(self.probe_time)
    }

    /// Returns the size of the buffer that bounds a head which has no end yet.
    pub(crate) fn head_buffer(&self) -> usize {
        self.header_bytes.max(SMALLEST_BUFFER)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::new()
    }
}
