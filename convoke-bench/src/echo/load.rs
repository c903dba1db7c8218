//! The load: connections that each send a message, wait until all of it has come back, and send the next. One
//! thread with epoll and nothing else, so that it does not cost its core more than any server's kernel part
//! does.

use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use super::Transport;
use super::dialogue::{Dialogue, Kind, STREAMS, Streams};
use super::epoll::Epoll;
use super::linux;

/// The core of the load; the server has the first.
const CORE: usize = 1;

/// The number of warm-up requests before the timed ones, for each connection, or as if there were at least
/// [`FEW`].
const WARM_UP: u64 = 4;
const FEW: u64 = 100;

/// The number of connections that are opened before the server must answer them: fewer than its backlog.
const AT_A_TIME: usize = 64;

/// The time without an answer, in milliseconds, after which the server counts as broken.
const SILENCE: i32 = 20_000;

/// The task of this process.
#[derive(Debug, PartialEq)]
pub(crate) struct Load {
    pub(super) transport: Transport,
    pub(super) port: u16,
    pub(super) connections: usize,
    pub(super) bytes: usize,
}

impl Load {
    pub(super) fn arguments(&self) -> [String; 4] {
        [
            self.transport.name().to_owned(),
            self.port.to_string(),
            self.connections.to_string(),
            self.bytes.to_string(),
        ]
    }

    pub(super) fn parse(words: &[&str]) -> Option<Self> {
        let [transport, port, connections, bytes] = words else { return None };
        let (port, bytes) = (port.parse().ok()?, bytes.parse().ok()?);
        Some(Self {
            transport: Transport::named(transport)?,
            port,
            connections: connections.parse().ok()?,
            bytes,
        })
    }

    /// Connects, prints `ready`, and then reads numbers of requests and answers each with the nanoseconds
    /// they took, and the number of all requests, including those before and after.
    pub(super) fn run(&self) -> io::Result<()> {
        linux::end_with_parent()?;
        // A server that computes may have all cores; the kernel then finds a place for the load.
        if !self.transport.is_on_cores() {
            linux::stay_on_core(CORE)?;
        }
        linux::allow_many_sockets()?;
        let mut generator = Generator::connect(self)?;
        println!("ready");
        for line in io::stdin().lock().lines() {
            let requests =
                line?.parse().map_err(|_| io::Error::other("the load takes numbers of requests"))?;
            let elapsed = generator.time(requests)?;
            println!("{} {}", elapsed.as_nanos(), generator.round.all * generator.dialogue.requests());
        }
        Ok(())
    }
}

struct Generator {
    epoll: Epoll,
    connections: Vec<Connection>,
    dialogue: Dialogue,
    /// The buffer for answers, and whether their contents are compared.
    answer: Vec<u8>,
    compare: bool,
    /// Numbers of messages of this round that were started, and that were answered.
    begun: u64,
    answered: u64,
    round: Round,
}

/// A round. The time runs from one answer to another, and all connections are busy before and after.
#[derive(Default)]
struct Round {
    all: u64,
    first: u64,
    last: u64,
    start: Option<Instant>,
    end: Option<Instant>,
}

struct Connection {
    socket: Socket,
    /// Numbers of bytes of the message that were sent, and that came back. Both are 0 between two requests.
    sent: usize,
    received: usize,
    /// Used by HTTP/2 only.
    streams: Streams,
}

enum Socket {
    Tcp(TcpStream),
    Udp(UdpSocket),
}

impl Generator {
    /// Opens the connections, a few at a time, and makes one request on each, whose answer is compared. Then
    /// each has been accepted, and its task waits.
    fn connect(load: &Load) -> io::Result<Self> {
        let dialogue = Dialogue::new(load.transport, load.port, load.bytes)?;
        let mut generator = Self {
            epoll: Epoll::new()?,
            connections: Vec::with_capacity(load.connections),
            answer: vec![0; dialogue.answer_bytes()],
            dialogue,
            compare: true,
            begun: 0,
            answered: 0,
            round: Round::default(),
        };
        while generator.connections.len() < load.connections {
            let few = AT_A_TIME.min(load.connections - generator.connections.len());
            generator.open(few, load)?;
        }
        generator.compare = false;
        Ok(generator)
    }

    fn open(&mut self, count: usize, load: &Load) -> io::Result<()> {
        let first = self.connections.len();
        for key in first..first + count {
            let socket = Socket::connect(load.transport, load.port)?;
            match &socket {
                Socket::Tcp(stream) => self.epoll.add(stream, key)?,
                Socket::Udp(socket) => self.epoll.add(socket, key)?,
            }
            self.connections.push(Connection { socket, sent: 0, received: 0, streams: Streams::default() });
        }
        self.begin_round(Round { all: count as u64, ..Round::default() });
        for key in first..first + count {
            self.begin_request(key)?;
        }
        self.finish_round()
    }

    /// Returns the time of `requests` requests, while all connections are busy.
    fn time(&mut self, requests: u64) -> io::Result<Duration> {
        let connections = self.connections.len() as u64;
        let first = WARM_UP * connections.max(FEW);
        let last = first + requests.div_ceil(self.dialogue.requests());
        self.begin_round(Round { all: last + connections, first, last, start: None, end: None });
        for key in 0..self.connections.len() {
            self.begin_request(key)?;
        }
        self.finish_round()?;
        let (Some(start), Some(end)) = (self.round.start, self.round.end) else {
            return Err(io::Error::other("a round without a beginning or an end"));
        };
        Ok(end - start)
    }

    fn begin_round(&mut self, round: Round) {
        (self.begun, self.answered, self.round) = (0, 0, round);
    }

    /// Runs until every request of the round has been answered.
    fn finish_round(&mut self) -> io::Result<()> {
        while self.answered < self.round.all {
            let events = self.epoll.wait(SILENCE)?;
            if events == 0 {
                return Err(io::Error::new(ErrorKind::TimedOut, "the server has fallen silent"));
            }
            for event in 0..events {
                self.advance(self.epoll.key(event))?;
            }
        }
        Ok(())
    }

    fn begin_request(&mut self, key: usize) -> io::Result<()> {
        self.begun += 1;
        let connection = &mut self.connections[key];
        self.dialogue.next_message(&mut connection.streams);
        connection.send(&self.dialogue.message)?;
        // Its message is overwritten by that of the next connection. It is small, and the socket is empty.
        if self.dialogue.kind == Kind::Http2 && connection.sent < self.dialogue.message.len() {
            return Err(io::Error::other("the server does not take requests"));
        }
        Ok(())
    }

    /// Continues with a connection that is readable or writable again.
    fn advance(&mut self, key: usize) -> io::Result<()> {
        let connection = &mut self.connections[key];
        if connection.sent == 0 {
            return Ok(());
        }
        if self.dialogue.kind != Kind::Http2 && connection.sent < self.dialogue.message.len() {
            connection.send(&self.dialogue.message)?;
        }
        let complete = if self.dialogue.kind == Kind::Http2 {
            connection.receive_frames(&mut self.answer)?
        } else {
            let before = connection.received;
            let complete = connection.receive(&mut self.answer)?;
            let after = if complete { self.answer.len() } else { connection.received };
            if self.compare && !self.dialogue.accepts(before, &self.answer[before..after]) {
                return Err(io::Error::other("the server sends something else back"));
            }
            complete
        };
        if !complete {
            return Ok(());
        }
        self.answered += 1;
        if self.answered == self.round.first {
            self.round.start = Some(Instant::now());
        } else if self.answered == self.round.last {
            self.round.end = Some(Instant::now());
        }
        if self.begun < self.round.all { self.begin_request(key) } else { Ok(()) }
    }
}

impl Connection {
    /// Sends as much of the rest of the message as the socket takes.
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let rest = &message[self.sent..];
        let sent = match &mut self.socket {
            Socket::Tcp(stream) => stream.write(rest),
            Socket::Udp(socket) => socket.send(rest),
        };
        self.sent += or_not_yet(sent)?;
        Ok(())
    }

    /// Receives what has arrived of the answer. Returns true if that was the rest of it.
    fn receive(&mut self, answer: &mut [u8]) -> io::Result<bool> {
        self.received += self.socket.receive(&mut answer[self.received..])?;
        let complete = self.received == answer.len();
        if complete {
            (self.sent, self.received) = (0, 0);
        }
        Ok(complete)
    }

    /// Receives frames that have arrived. Returns true if all requests of the message are answered.
    fn receive_frames(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        let received = self.socket.receive(buffer)?;
        self.streams.receive(&buffer[..received])?;
        let complete = self.streams.ended == STREAMS;
        if complete {
            (self.sent, self.streams.ended) = (0, 0);
        }
        Ok(complete)
    }
}

impl Socket {
    fn connect(transport: Transport, port: u16) -> io::Result<Self> {
        let server = (Ipv4Addr::LOCALHOST, port);
        Ok(match transport {
            Transport::Tcp | Transport::Work | Transport::Http1 | Transport::Http2 | Transport::HttpWork => {
                let stream = TcpStream::connect(server)?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                linux::forget_when_closed(&stream)?;
                Self::Tcp(stream)
            }
            Transport::Udp => {
                let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
                socket.connect(server)?;
                socket.set_nonblocking(true)?;
                Self::Udp(socket)
            }
        })
    }

    /// Receives what has arrived. Returns zero if that is nothing.
    fn receive(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let received = match self {
            Self::Tcp(stream) => stream.read(target),
            Self::Udp(socket) => socket.recv(target),
        };
        if matches!(received, Ok(0)) {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the server has closed a connection"));
        }
        or_not_yet(received)
    }
}

/// Maps `WouldBlock` to zero: such a call has done nothing and is not an error.
fn or_not_yet(done: io::Result<usize>) -> io::Result<usize> {
    match done {
        Err(problem) if problem.kind() == ErrorKind::WouldBlock => Ok(0),
        other => other,
    }
}
