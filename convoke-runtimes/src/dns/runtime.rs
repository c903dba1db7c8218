//! hickory's traits of runtimes.

use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use std::io;
use std::net::SocketAddr;
use std::time::UNIX_EPOCH;

use async_trait::async_trait;
use convoke_exec::time::sleep;
use convoke_net::net::{CONNECT_LIMIT, ConnectOptions, TcpStream, UdpSocket};
use convoke_task::timeout;
use hickory_net::runtime::{RuntimeProvider, Spawn, Time};

use super::Dns;
use super::tcp::DnsTcp;
use super::udp::DnsUdp;

type Made<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

impl RuntimeProvider for Dns {
    type Handle = Self;
    type Timer = Clock;
    type Udp = DnsUdp;
    type Tcp = DnsTcp;

    fn create_handle(&self) -> Self {
        self.clone()
    }

    fn connect_tcp(
        &self,
        server: SocketAddr,
        from: Option<SocketAddr>,
        limit: Option<Duration>,
    ) -> Made<DnsTcp> {
        let mut options = ConnectOptions::new();
        if let Some(from) = from {
            options = options.bind(from);
        }
        Box::pin(async move {
            let connect = TcpStream::connect_with(server, options);
            let stream = timeout(limit.unwrap_or(CONNECT_LIMIT), connect).await??;
            stream.set_nodelay(true)?;
            Ok(DnsTcp(stream))
        })
    }

    fn bind_udp(&self, local: SocketAddr, _: SocketAddr) -> Made<DnsUdp> {
        Box::pin(async move { UdpSocket::bind(local).await.map(DnsUdp) })
    }
}

impl Spawn for Dns {
    fn spawn_bg(&mut self, future: impl Future<Output = ()> + Send + 'static) {
        self.background.spawn(future);
    }
}

/// The clock of a [`Dns`]: that of the task, which may be virtual.
#[derive(Clone, Copy, Debug)]
pub struct Clock;

#[async_trait]
impl Time for Clock {
    async fn delay_for(duration: Duration) {
        sleep(duration).await;
    }

    async fn timeout<F: 'static + Future + Send>(
        duration: Duration,
        future: F,
    ) -> Result<F::Output, io::Error> {
        Ok(timeout(duration, future).await?)
    }

    fn current_time() -> u64 {
        let since = convoke_io::context::time_of_day().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_secs())
    }
}
