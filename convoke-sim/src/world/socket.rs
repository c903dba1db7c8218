//! Sockets of hosts: what all kinds have in common, and how they are opened and closed.

use core::time::Duration;
use std::io;
use std::path::PathBuf;

use convoke_io::driver::{Address, Interest, ListenOptions, SocketOption, shut_down};

use super::datagrams::Datagrams;
use super::hosts::Transport;
use super::listener::Listener;
use super::stream::Stream;
use super::waiting::Direction;
use super::{HostId, SocketId, WorldState};

#[derive(Debug)]
pub(super) struct Socket {
    pub(super) host: HostId,
    pub(super) local: Address,
    pub(super) kind: Kind,
    pub(super) shares_port: bool,
    pub(super) options: Options,
    pub(super) reading: Direction,
    pub(super) writing: Direction,
    pub(super) holder: Holder,
}

/// The current holder of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// The kernel: it waits to be accepted.
    Backlog,
    /// The program, through a descriptor.
    Program,
    /// The network: the program has closed it, and it exists until what was written to it has arrived.
    Network,
}

/// The way in which a read treats the bytes: takes them, or leaves them to be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taking {
    Takes,
    Peeks,
}

#[derive(Debug)]
pub(super) enum Kind {
    Stream(Stream),
    Listener(Listener),
    Datagrams(Datagrams),
}

impl Kind {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Stream(_) => "a stream at",
            Self::Listener(_) => "a listener at",
            Self::Datagrams(_) => "a datagram socket at",
        }
    }
}

/// The options of a socket. Linger, keep-alive, the receive buffer and the multicast loop have an effect; the
/// others are only stored.
#[derive(Clone, Debug)]
pub(super) struct Options {
    no_delay: bool,
    time_to_live: u32,
    broadcast: bool,
    send_buffer: usize,
    reuse_address: bool,
    type_of_service: u32,
    multicast_hops: u32,
    pub(super) multicast_loop: bool,
    pub(super) linger: Option<Duration>,
    pub(super) keep_alive: Option<Duration>,
    pub(super) receive_buffer: usize,
}

impl Socket {
    pub(super) fn is_open(&self) -> bool {
        self.holder == Holder::Program
    }

    /// Splits off the part that the network still has when its holder crashes: a stream with bytes in
    /// transit. The socket itself keeps its name and peer, and has nothing in transit.
    pub(super) fn leave_orphan(&mut self) -> Option<Self> {
        let left = self.as_stream()?.without_what_is_underway()?;
        let kind = core::mem::replace(&mut self.kind, Kind::Stream(left));
        let options = Options { keep_alive: None, ..self.options.clone() };
        let (reading, writing) = (Direction::default(), Direction::default());
        let (host, local, holder) = (self.host, self.local.clone(), Holder::Network);
        Some(Self { host, local, kind, shares_port: false, options, reading, writing, holder })
    }

    pub(super) fn as_stream(&mut self) -> Option<&mut Stream> {
        match &mut self.kind {
            Kind::Stream(stream) => Some(stream),
            Kind::Listener(_) | Kind::Datagrams(_) => None,
        }
    }
}

impl WorldState {
    /// Adds a socket.
    pub(super) fn add(&mut self, host: HostId, local: Address, kind: Kind, holder: Holder) -> SocketId {
        let window = self.hosts[host.0].limits.window;
        let options = Options {
            no_delay: false,
            time_to_live: 64,
            broadcast: false,
            send_buffer: window,
            reuse_address: false,
            type_of_service: 0,
            multicast_hops: 1,
            multicast_loop: true,
            linger: None,
            keep_alive: None,
            receive_buffer: window,
        };
        let (reading, writing) = (Direction::default(), Direction::default());
        let shares_port = false;
        self.host(host).open += usize::from(holder == Holder::Program);
        self.sockets.insert(Socket { host, local, kind, shares_port, options, reading, writing, holder })
    }

    /// Adds a listener or a datagram socket at a free address.
    pub(crate) fn bind(
        &mut self,
        host: HostId,
        run_number: u64,
        at: &Address,
        options: &ListenOptions,
        transport: Transport,
    ) -> io::Result<SocketId> {
        if let Some(dead) = self.begin_to_open(host, run_number, "bind", at)? {
            return Ok(dead);
        }
        let kind = match transport {
            Transport::Streams => Kind::Listener(Listener::new(options.backlog)),
            Transport::Datagrams => Kind::Datagrams(Datagrams::default()),
        };
        match at {
            Address::Internet(wanted) => {
                let address = self.free_address(host, transport, *wanted, options.reuse_port)?;
                let id = self.add(host, address.into(), kind, Holder::Program);
                self.socket(id)?.shares_port = options.reuse_port;
                self.host(host).bound.entry((transport, address.port())).or_default().push(id);
                Ok(id)
            }
            Address::Path(path) => self.bind_path(host, path, kind),
            _ => Ok(self.add(host, Address::Unnamed, kind, Holder::Program)),
        }
    }

    fn bind_path(&mut self, host: HostId, path: &PathBuf, kind: Kind) -> io::Result<SocketId> {
        if self.hosts[host.0].paths.contains_key(path) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let id = self.add(host, Address::Path(path.clone()), kind, Holder::Program);
        self.host(host).paths.insert(path.clone(), id);
        Ok(id)
    }

    /// Returns the socket, or an error if its host has shut down.
    pub(super) fn socket(&mut self, id: SocketId) -> io::Result<&mut Socket> {
        self.crashed.get(id).or_else(|| self.sockets.get_mut(id)).ok_or_else(gone)
    }

    pub(crate) fn local_address(&mut self, id: SocketId) -> io::Result<Address> {
        Ok(self.socket(id)?.local.clone())
    }

    /// Closes a socket that its program has dropped.
    pub(crate) fn close(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        socket.holder = Holder::Network;
        let (host, local) = (socket.host, socket.local.clone());
        self.host(host).open -= 1;
        self.unbind(host, &local, id);
        // The network may keep the socket for a while. A read that an injected error struck has left its waker here.
        self.wake_watchers(id, Interest::Read);
        self.wake_watchers(id, Interest::Write);
        match &mut self.sockets.get_mut(id).expect("found above").kind {
            Kind::Stream(_) => self.close_stream(id),
            Kind::Listener(listener) => {
                let waiting = core::mem::take(&mut listener.pending);
                self.forget(id);
                for connection in waiting {
                    self.abort(connection);
                }
            }
            Kind::Datagrams(_) => self.forget(id),
        }
    }

    /// Frees its address.
    fn unbind(&mut self, host: HostId, local: &Address, id: SocketId) {
        let host = self.host(host);
        match local {
            Address::Internet(address) => {
                for transport in [Transport::Streams, Transport::Datagrams] {
                    if let Some(there) = host.bound.get_mut(&(transport, address.port())) {
                        there.retain(|other| *other != id);
                    }
                }
            }
            Address::Path(path) if host.paths.get(path) == Some(&id) => _ = host.paths.remove(path),
            _ => {}
        }
    }

    /// Removes a socket. Operations that wait for it fail.
    pub(super) fn forget(&mut self, id: SocketId) {
        if let Some(socket) = self.sockets.remove(id) {
            self.fail_waiters(socket);
        }
    }

    /// Shuts down the I/O of a host.
    pub(crate) fn close_host(&mut self, host: HostId) {
        let its_own = self.sockets.iter().filter(|(_, socket)| socket.host == host);
        let ids: Vec<SocketId> = its_own.map(|(id, _)| id).collect();
        self.release_notifications(host);
        self.host(host).up = false;
        ids.into_iter().for_each(|id| self.forget(id));
        let host = self.host(host);
        host.open = 0;
        host.forget_names();
    }

    /// Marks the host as running and returns the number of this run.
    pub(crate) fn boot(&mut self, host: HostId) -> u64 {
        self.note_event(format!("{} starts", self.name(host)));
        self.mark_ready(host);
        let host = self.host(host);
        (host.up, host.runs) = (true, true);
        host.run_number
    }

    pub(crate) fn set_option(&mut self, id: SocketId, option: SocketOption) -> io::Result<()> {
        let options = &mut self.socket(id)?.options;
        match option {
            SocketOption::NoDelay(on) => options.no_delay = on,
            SocketOption::TimeToLive(hops) => options.time_to_live = hops,
            SocketOption::Broadcast(on) => options.broadcast = on,
            SocketOption::SendBuffer(bytes) => options.send_buffer = bytes,
            SocketOption::ReceiveBuffer(bytes) => {
                options.receive_buffer = bytes;
                self.open_window(id);
            }
            SocketOption::Linger(linger) => options.linger = linger,
            SocketOption::ReuseAddress(on) => options.reuse_address = on,
            SocketOption::TypeOfService(service) => options.type_of_service = service,
            SocketOption::MulticastLoop(on) => options.multicast_loop = on,
            SocketOption::MulticastHops(hops) => options.multicast_hops = hops,
            SocketOption::KeepAlive(after) => {
                options.keep_alive = after;
                self.keep_alive(id);
            }
            other => return Err(convoke_io::driver::unsupported(&format!("option {other:?}"))),
        }
        Ok(())
    }

    pub(crate) fn option(&mut self, id: SocketId, option: SocketOption) -> io::Result<SocketOption> {
        let options = &self.socket(id)?.options;
        Ok(match option {
            SocketOption::NoDelay(_) => SocketOption::NoDelay(options.no_delay),
            SocketOption::TimeToLive(_) => SocketOption::TimeToLive(options.time_to_live),
            SocketOption::Broadcast(_) => SocketOption::Broadcast(options.broadcast),
            SocketOption::SendBuffer(_) => SocketOption::SendBuffer(options.send_buffer),
            SocketOption::ReceiveBuffer(_) => SocketOption::ReceiveBuffer(options.receive_buffer),
            SocketOption::Linger(_) => SocketOption::Linger(options.linger),
            SocketOption::ReuseAddress(_) => SocketOption::ReuseAddress(options.reuse_address),
            SocketOption::TypeOfService(_) => SocketOption::TypeOfService(options.type_of_service),
            SocketOption::MulticastLoop(_) => SocketOption::MulticastLoop(options.multicast_loop),
            SocketOption::MulticastHops(_) => SocketOption::MulticastHops(options.multicast_hops),
            SocketOption::KeepAlive(_) => SocketOption::KeepAlive(options.keep_alive),
            other => return Err(convoke_io::driver::unsupported(&format!("option {other:?}"))),
        })
    }
}

/// Returns the error for a socket that does not exist any more.
pub(super) fn gone() -> io::Error {
    shut_down()
}
