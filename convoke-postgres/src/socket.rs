//! The socket below a connection: TCP or, where there is one, a Unix socket; and where it leads to.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::io::{self, IoSlice};
use std::time::Duration;

use convoke_net::net::{ConnectOptions, SocketOption, TcpStream};
use futures_io::{AsyncRead, AsyncWrite};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// The port of PostgreSQL, if the configuration names none.
const PORT: u16 = 5432;

/// One server of a configuration.
#[derive(Clone, Debug)]
pub(crate) enum Server {
    Tcp {
        /// The name or the address to connect to.
        host: String,
        port: u16,
        /// The name that a certificate must bear.
        #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only TLS asks for it"))]
        name: String,
    },
    #[cfg(unix)]
    Unix(std::path::PathBuf),
}

/// A connected socket.
pub(crate) enum Socket {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(convoke_net::net::UnixStream),
}

impl Server {
    /// Returns the servers of a configuration, in the order in which they are tried.
    pub(crate) fn all_of(config: &Config) -> Vec<Self> {
        let (hosts, addresses, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
        // One port may stand for all hosts.
        let port = |index: usize| ports.get(index).or(ports.first()).copied().unwrap_or(PORT);
        let host = |(index, host): (usize, &Host)| match host {
            Host::Tcp(name) => {
                let host = addresses.get(index).map_or_else(|| name.clone(), ToString::to_string);
                Self::Tcp { host, port: port(index), name: name.clone() }
            }
            #[cfg(unix)]
            Host::Unix(folder) => Self::Unix(folder.join(format!(".s.PGSQL.{}", port(index)))),
        };
        let mut servers: Vec<_> = hosts.iter().enumerate().map(host).collect();
        for (index, address) in addresses.iter().enumerate().skip(servers.len()) {
            let host = address.to_string();
            servers.push(Self::Tcp { name: host.clone(), host, port: port(index) });
        }
        servers
    }

    /// Connects to the server.
    pub(crate) async fn connect(&self, keep_alive: Duration) -> io::Result<Socket> {
        match self {
            Self::Tcp { host, port, .. } => {
                let options = ConnectOptions::new()
                    .option(SocketOption::NoDelay(true))
                    .option(SocketOption::KeepAlive(Some(keep_alive)));
                TcpStream::connect_with((host.as_str(), *port), options).await.map(Socket::Tcp)
            }
            #[cfg(unix)]
            Self::Unix(path) => convoke_net::net::UnixStream::connect(path).await.map(Socket::Unix),
        }
    }
}

/// Calls a function of the stream inside.
macro_rules! inside {
    ($socket:expr, $stream:ident => $call:expr) => {
        match $socket.get_mut() {
            Socket::Tcp($stream) => $call,
            #[cfg(unix)]
            Socket::Unix($stream) => $call,
        }
    };
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        inside!(self, stream => Pin::new(stream).poll_read(cx, buffer))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        inside!(self, stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        inside!(self, stream => Pin::new(stream).poll_write_vectored(cx, buffers))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        inside!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        inside!(self, stream => Pin::new(stream).poll_close(cx))
    }
}
