//! No runtime: a hand-written loop around epoll, the minimum cost of a server. It is edge-triggered, so that
//! a handled event is not reported again by the next wait; and a read that does not fill the buffer is the
//! last.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};

use super::Server;
use crate::echo::epoll::Epoll;

pub(super) const SERVER: Server = Server { peer: "raw_epoll", tcp, udp };

/// The key of the socket that accepts or receives; the key of a connection is its index.
const LISTENER: usize = usize::MAX;

/// Waits without a limit.
const FOR_EVER: i32 = -1;

fn tcp(listener: TcpListener, buffer: usize) {
    let mut epoll = Epoll::new().expect("there is an epoll");
    epoll.add(&listener, LISTENER).expect("the listener is watched");
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut vacant: Vec<usize> = Vec::new();
    loop {
        let events = epoll.wait(FOR_EVER).expect("there are events");
        for event in 0..events {
            let key = epoll.key(event);
            if key == LISTENER {
                accept(&listener, buffer, &epoll, &mut connections, &mut vacant);
            } else if let Some(connection) = &mut connections[key]
                && connection.advance().is_none()
            {
                connections[key] = None;
                vacant.push(key);
            }
        }
    }
}

fn accept(
    listener: &TcpListener,
    buffer: usize,
    epoll: &Epoll,
    connections: &mut Vec<Option<Connection>>,
    vacant: &mut Vec<usize>,
) {
    while let Ok((stream, _)) = listener.accept() {
        let _ = stream.set_nodelay(true);
        stream.set_nonblocking(true).expect("a connection need not block");
        let key = vacant.pop().unwrap_or_else(|| {
            connections.push(None);
            connections.len() - 1
        });
        epoll.add(&stream, key).expect("a connection is watched");
        let buffer = vec![0; buffer].into_boxed_slice();
        connections[key] = Some(Connection { stream, buffer, filled: 0, written: 0 });
    }
}

struct Connection {
    stream: TcpStream,
    buffer: Box<[u8]>,
    /// The number of bytes that were read, and of those that were written back.
    filled: usize,
    written: usize,
}

impl Connection {
    /// Reads and writes until one of them would block. Returns `None` when the connection is over.
    fn advance(&mut self) -> Option<()> {
        loop {
            self.write()?;
            if self.written < self.filled {
                return Some(());
            }
            match self.stream.read(&mut self.buffer) {
                Ok(0) => return None,
                Ok(count) => (self.filled, self.written) = (count, 0),
                Err(problem) if problem.kind() == ErrorKind::WouldBlock => return Some(()),
                Err(_) => return None,
            }
            // Valid for this read only: after a wait to write, an event may have been missed.
            if self.filled < self.buffer.len() {
                return self.write();
            }
        }
    }

    /// Writes what was read, as much as the socket takes.
    fn write(&mut self) -> Option<()> {
        while self.written < self.filled {
            match self.stream.write(&self.buffer[self.written..self.filled]) {
                Ok(count) => self.written += count,
                Err(problem) if problem.kind() == ErrorKind::WouldBlock => return Some(()),
                Err(_) => return None,
            }
        }
        Some(())
    }
}

fn udp(socket: UdpSocket, buffer: usize) {
    let mut epoll = Epoll::new().expect("there is an epoll");
    epoll.add(&socket, LISTENER).expect("the socket is watched");
    let mut buffer = vec![0; buffer];
    loop {
        epoll.wait(FOR_EVER).expect("there are events");
        while let Ok((count, client)) = socket.recv_from(&mut buffer) {
            socket.send_to(&buffer[..count], client).expect("a datagram is sent");
        }
    }
}
