//! quinn's trait of UDP sockets, over a source of the driver. With a descriptor, quinn-udp sends and receives: it knows how a
//! kernel takes several datagrams at once, and when it is best left alone. Without one, a datagram at a time.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::panic::Location;
use std::sync::{Arc, PoisonError};

use ::quinn::udp::{RecvMeta, Transmit, UdpSocketState};
use ::quinn::{AsyncUdpSocket, UdpPoller};
use convoke_core::raw::sync::Mutex;
use convoke_io::attempting::Waiting;
use convoke_io::driver::{Address, Interest, Source};

/// A UDP socket of quinn's.
#[derive(Debug)]
pub(super) struct Socket {
    source: Arc<dyn Source>,
    /// `None` if the source has no descriptor.
    kernel: Option<UdpSocketState>,
    /// The wait of the endpoint's task, which alone receives. Not locked while it polls: a waker may run foreign code.
    receiving: Mutex<Waiting>,
}

impl Socket {
    pub(super) fn new(source: Arc<dyn Source>) -> io::Result<Self> {
        let kernel = kernel_state(&*source)?;
        Ok(Self { source, kernel, receiving: Mutex::new(Waiting::new(Interest::Read)) })
    }

    fn swap_receiving(&self, with: Waiting) -> Waiting {
        core::mem::replace(&mut self.receiving.lock().unwrap_or_else(PoisonError::into_inner), with)
    }
}

#[cfg(unix)]
fn kernel_state(source: &dyn Source) -> io::Result<Option<UdpSocketState>> {
    source.descriptor().map(|descriptor| UdpSocketState::new((&descriptor).into())).transpose()
}

#[cfg(not(unix))]
fn kernel_state(_: &dyn Source) -> io::Result<Option<UdpSocketState>> {
    Ok(None)
}

#[cfg(unix)]
fn kernel_send(source: &dyn Source, kernel: &UdpSocketState, transmit: &Transmit<'_>) -> io::Result<()> {
    source.try_io(Interest::Write, &mut || match source.descriptor() {
        Some(descriptor) => kernel.send((&descriptor).into(), transmit),
        None => Err(io::ErrorKind::NotConnected.into()),
    })
}

#[cfg(unix)]
fn kernel_receive(
    source: &dyn Source,
    kernel: &UdpSocketState,
    buffers: &mut [IoSliceMut<'_>],
    meta: &mut [RecvMeta],
) -> io::Result<usize> {
    let mut received = 0;
    source.try_io(Interest::Read, &mut || match source.descriptor() {
        Some(descriptor) => {
            received = kernel.recv((&descriptor).into(), buffers, meta)?;
            Ok(())
        }
        None => Err(io::ErrorKind::NotConnected.into()),
    })?;
    Ok(received)
}

#[cfg(not(unix))]
fn kernel_send(_: &dyn Source, _: &UdpSocketState, _: &Transmit<'_>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(unix))]
fn kernel_receive(
    _: &dyn Source,
    _: &UdpSocketState,
    _: &mut [IoSliceMut<'_>],
    _: &mut [RecvMeta],
) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Receives one datagram.
fn receive_one(
    source: &dyn Source,
    buffers: &mut [IoSliceMut<'_>],
    meta: &mut [RecvMeta],
) -> io::Result<usize> {
    let (Some(buffer), Some(meta)) = (buffers.first_mut(), meta.first_mut()) else { return Ok(0) };
    let (length, from) = source.try_receive_from(buffer)?;
    *meta = RecvMeta { addr: internet(&from)?, len: length, stride: length, ..RecvMeta::default() };
    Ok(1)
}

fn internet(address: &Address) -> io::Result<SocketAddr> {
    address.internet().ok_or_else(|| io::Error::other("QUIC needs an address of the Internet"))
}

impl AsyncUdpSocket for Socket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        let waiting = Mutex::new(Waiting::new(Interest::Write));
        Box::pin(Sending { source: self.source.clone(), waiting })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        match &self.kernel {
            Some(kernel) => kernel_send(&*self.source, kernel, transmit),
            None => {
                let to = Address::Internet(transmit.destination);
                self.source.try_send_to(transmit.contents, &to).map(drop)
            }
        }
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut waiting = self.swap_receiving(Waiting::new(Interest::Read));
        let polled = waiting.poll(&*self.source, Location::caller(), cx, |source| match &self.kernel {
            Some(kernel) => kernel_receive(source, kernel, buffers, meta),
            None => receive_one(source, buffers, meta),
        });
        // Of two callers at once the second one's wait stays.
        self.swap_receiving(waiting).release(&*self.source);
        polled
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        internet(&self.source.local_address()?)
    }

    fn max_transmit_segments(&self) -> usize {
        self.kernel.as_ref().map_or(1, UdpSocketState::max_gso_segments)
    }

    fn max_receive_segments(&self) -> usize {
        self.kernel.as_ref().map_or(1, UdpSocketState::gro_segments)
    }

    fn may_fragment(&self) -> bool {
        self.kernel.as_ref().is_none_or(UdpSocketState::may_fragment)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.swap_receiving(Waiting::new(Interest::Read)).release(&*self.source);
    }
}

/// The wait of one task until the socket takes datagrams.
#[derive(Debug)]
struct Sending {
    source: Arc<dyn Source>,
    /// Always accessed through `&mut`: the mutex only makes it `Sync`.
    waiting: Mutex<Waiting>,
}

impl Sending {
    fn waiting(&mut self) -> &mut Waiting {
        self.waiting.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UdpPoller for Sending {
    fn poll_writable(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let source = self.source.clone();
        // `WouldBlock` registers a watcher, unless the source is ready: then there is a second call.
        let mut has_asked = false;
        self.waiting().poll(&*source, Location::caller(), cx, |_| {
            match core::mem::replace(&mut has_asked, true) {
                true => Ok(()),
                false => Err(io::ErrorKind::WouldBlock.into()),
            }
        })
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        let source = self.source.clone();
        self.waiting().release(&*source);
    }
}
