//! hickory's trait of TCP streams.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;

use convoke_net::net::TcpStream;
use futures_io::{AsyncRead, AsyncWrite};
use hickory_net::runtime::DnsTcpStream;

use super::runtime::Clock;

/// The TCP stream of a [`Dns`](super::Dns).
#[derive(Debug)]
pub struct DnsTcp(pub(super) TcpStream);

impl DnsTcpStream for DnsTcp {
    type Time = Clock;
}

impl AsyncRead for DnsTcp {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for DnsTcp {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_close(cx)
    }
}
