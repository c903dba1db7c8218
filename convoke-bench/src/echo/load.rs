//! The load: connections that each send a message, wait until all of it has come back, and send the next. One
//! thread with epoll and nothing else, so that it does not cost its core more than any server's kernel part
//! does.

use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use super::Transport;
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
        if self.transport != Transport::Work {
            linux::stay_on_core(CORE)?;
        }
        linux::allow_many_sockets()?;
        let mut generator = Generator::connect(self)?;
        println!("ready");
        for line in io::stdin().lock().lines() {
            let requests =
                line?.parse().map_err(|_| io::Error::other("the load takes numbers of requests"))?;
            let elapsed = generator.time(requests)?;
            println!("{} {}", elapsed.as_nanos(), generator.round.all);
        }
        Ok(())
    }
}

struct Generator {
    epoll: Epoll,
    connections: Vec<Connection>,
    message: Vec<u8>,
    /// The buffer for echoes, and whether their contents are compared.
    echo: Vec<u8>,
    compare: bool,
    /// Numbers of requests of this round that were started, and that were answered.
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
}

enum Socket {
    Tcp(TcpStream),
    Udp(UdpSocket),
}

impl Generator {
    /// Opens the connections, a few at a time, and makes one request on each, whose answer is compared. Then
    /// each has been accepted, and its task waits.
    fn connect(load: &Load) -> io::Result<Self> {
        let message = (0..load.bytes).map(|index| (index % 251) as u8).collect();
        let mut generator = Self {
            epoll: Epoll::new()?,
            connections: Vec::with_capacity(load.connections),
            message,
            echo: vec![0; load.bytes],
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
            self.connections.push(Connection { socket, sent: 0, received: 0 });
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
        let last = first + requests;
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
        self.connections[key].send(&self.message)
    }

    /// Continues with a connection that is readable or writable again.
    fn advance(&mut self, key: usize) -> io::Result<()> {
        let connection = &mut self.connections[key];
        if connection.sent == 0 {
            return Ok(());
        }
        if connection.sent < self.message.len() {
            connection.send(&self.message)?;
        }
        let before = connection.received;
        let complete = connection.receive(&mut self.echo)?;
        let after = if complete { self.message.len() } else { connection.received };
        if self.compare && self.echo[before..after] != self.message[before..after] {
            return Err(io::Error::other("the server sends something else back"));
        }
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

    /// Receives what has arrived of the echo. Returns true if that was the rest of it.
    fn receive(&mut self, echo: &mut [u8]) -> io::Result<bool> {
        let rest = &mut echo[self.received..];
        let received = match &mut self.socket {
            Socket::Tcp(stream) => stream.read(rest),
            Socket::Udp(socket) => socket.recv(rest),
        };
        if matches!(received, Ok(0)) {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the server has closed a connection"));
        }
        self.received += or_not_yet(received)?;
        let complete = self.received == echo.len();
        if complete {
            (self.sent, self.received) = (0, 0);
        }
        Ok(complete)
    }
}

impl Socket {
    fn connect(transport: Transport, port: u16) -> io::Result<Self> {
        let server = (Ipv4Addr::LOCALHOST, port);
        Ok(match transport {
            Transport::Tcp | Transport::Work => {
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
}

/// Maps `WouldBlock` to zero: such a call has done nothing and is not an error.
fn or_not_yet(done: io::Result<usize>) -> io::Result<usize> {
    match done {
        Err(problem) if problem.kind() == ErrorKind::WouldBlock => Ok(0),
        other => other,
    }
}
