//! The process of a server: it creates the socket and passes it to the peer.
//!
//! It has only the server's thread, because glibc's system calls and allocator take longer in a program with
//! several. So it is measured from outside; there is a second thread only where allocations are counted.

use std::io::{self, BufRead};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::thread;

use super::{Transport, linux, servers};
use crate::allocator;

/// The core of the server; the load has the second.
const CORE: usize = 0;

/// The argument for a server that counts allocations on request.
const COUNTING: &str = "counting";

/// The task of this process.
#[derive(Debug, PartialEq)]
pub(crate) struct Serve {
    pub(super) peer: String,
    pub(super) transport: Transport,
    /// The size of the buffer of each connection.
    pub(super) buffer: usize,
    /// If true, a line on standard input starts to count allocations, and the next line ends it and is
    /// answered with their number.
    pub(super) counting: bool,
}

impl Serve {
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut words = vec![self.peer.clone(), self.transport.name().to_owned(), self.buffer.to_string()];
        if self.counting {
            words.push(COUNTING.to_owned());
        }
        words
    }

    pub(super) fn parse(words: &[&str]) -> Option<Self> {
        let (words, counting) = match words {
            [words @ .., COUNTING] => (words, true),
            words => (words, false),
        };
        let [peer, transport, buffer] = words else { return None };
        let (peer, transport) = ((*peer).to_owned(), Transport::named(transport)?);
        Some(Self { peer, transport, buffer: buffer.parse().ok()?, counting })
    }

    /// Prints the port of its socket, and serves until the process ends.
    pub(super) fn run(&self) -> io::Result<()> {
        linux::end_with_parent()?;
        linux::allow_many_sockets()?;
        match self.transport {
            Transport::Work => return self.run_on_cores(servers::on_cores()),
            Transport::HttpWork => return self.run_on_cores(servers::http_on_cores()),
            Transport::Http1 | Transport::Http2 => return self.run_http(),
            Transport::Tcp | Transport::Udp => {}
        }
        let server = servers::all().find(|server| server.peer == self.peer).ok_or_else(|| self.unknown())?;
        linux::stay_on_core(CORE)?;
        match self.transport {
            Transport::Udp => {
                let any_port = (Ipv4Addr::LOCALHOST, 0);
                let socket = UdpSocket::bind(any_port)?;
                socket.set_nonblocking(true)?;
                self.begin(socket.local_addr()?.port());
                (server.udp)(socket, self.buffer);
            }
            _ => (server.tcp)(self.listener()?, self.buffer),
        }
        Err(self.ended())
    }

    /// Serves HTTP on one core.
    fn run_http(&self) -> io::Result<()> {
        let mut servers = servers::http();
        let server = servers.find(|server| server.peer == self.peer).ok_or_else(|| self.unknown())?;
        linux::stay_on_core(CORE)?;
        (server.serve)(self.listener()?, self.transport);
        Err(self.ended())
    }

    /// Serves on all cores, or on one, as the server says.
    fn run_on_cores(&self, mut servers: impl Iterator<Item = servers::CoresServer>) -> io::Result<()> {
        let server = servers.find(|server| server.peer == self.peer).ok_or_else(|| self.unknown())?;
        if server.cores == 1 {
            linux::stay_on_core(CORE)?;
        }
        (server.serve)(self.listener()?, self.buffer, server.cores);
        Err(self.ended())
    }

    fn ended(&self) -> io::Error {
        io::Error::other(format!("the server {} has ended by itself", self.peer))
    }

    /// Binds a listener, and prints its port.
    fn listener(&self) -> io::Result<TcpListener> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        self.begin(listener.local_addr()?.port());
        Ok(listener)
    }

    fn unknown(&self) -> io::Error {
        io::Error::other(format!("there is no server {}", self.peer))
    }

    fn begin(&self, port: u16) {
        println!("{port}");
        if self.counting {
            thread::spawn(count_when_told);
        }
    }
}

fn count_when_told() {
    let mut lines = io::stdin().lock().lines();
    while let Some(Ok(_)) = lines.next() {
        println!();
        let mut until = None;
        let allocations = allocator::count(|| until = lines.next());
        if let Some(Ok(_)) = until {
            // Reading the line is one of them.
            println!("{}", allocations - 1);
        }
    }
}
