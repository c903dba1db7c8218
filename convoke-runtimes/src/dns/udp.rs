//! hickory's trait of UDP sockets.

use core::task::{Context, Poll};
use std::io;
use std::net::SocketAddr;

use async_trait::async_trait;
use convoke_net::net::UdpSocket;
use hickory_net::runtime::DnsUdpSocket;

use super::runtime::Clock;

/// The UDP socket of a [`Dns`](super::Dns).
#[derive(Debug)]
pub struct DnsUdp(pub(super) UdpSocket);

#[async_trait]
impl DnsUdpSocket for DnsUdp {
    type Time = Clock;

    fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        self.0.poll_recv_from(cx, buffer)
    }

    fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        buffer: &[u8],
        target: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.0.poll_send_to(cx, buffer, target)
    }
}
