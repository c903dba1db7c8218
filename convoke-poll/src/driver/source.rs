//! `PollSource`: a socket of this driver. It implements the `Source` contract over `SourceState`.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use core::task::Waker;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::sync::Arc;

#[cfg(unix)]
use convoke_io::driver::PeerCredentials;
use convoke_io::driver::{
    Accepted, Address, InFlight, Interest, MulticastGroup, OperationId, SocketOption, Source, SpareBuffer,
    StandardSocket, Submitted, Ticket,
};

use super::SharedDriver;
use super::state::SourceState;
#[cfg(unix)]
use crate::credentials;
use crate::registry::Registered;
use crate::{addresses, calls, options};

/// A socket of this driver. Its users own it; the driver only knows its address (`Registry`). When the last
/// reference is dropped, the socket is removed from the poller and then closed.
pub(crate) struct PollSource {
    pub(crate) state: SourceState,
    /// The driver may access it while it is being dropped: rule 3 of `Registry`.
    _pinned: PhantomPinned,
}

// SAFETY: `unconnected` creates it in an `Arc` and never moves it out. `PhantomPinned` makes it not `Unpin`.
// `drop` first calls `SourceState::remove`, which removes it from the registry under the registry's lock.
unsafe impl Registered for PollSource {}

impl PollSource {
    /// Registers a socket with the driver and the kernel.
    pub(crate) fn register(
        driver: &Arc<SharedDriver>,
        socket: StandardSocket,
    ) -> io::Result<Arc<dyn Source>> {
        let source = Self::unconnected(driver, socket)?;
        source.state.add()?;
        Ok(source)
    }

    /// Registers a stream with the driver only. It is registered with the kernel when it is connected.
    pub(crate) fn unconnected(driver: &Arc<SharedDriver>, socket: StandardSocket) -> io::Result<Arc<Self>> {
        driver.insert(|key| {
            Arc::new(Self { state: SourceState::new(socket, driver.clone(), key), _pinned: PhantomPinned })
        })
    }

    fn socket(&self) -> &StandardSocket {
        &self.state.socket
    }
}

impl fmt::Debug for PollSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PollSource").field("socket", &self.state.socket.handle()).finish_non_exhaustive()
    }
}

impl Drop for PollSource {
    fn drop(&mut self) {
        self.state.remove();
    }
}

// Called through the table of the trait only. Marked `#[inline]`, functions would be compiled in each codegen unit that
// creates a source.
impl Source for PollSource {
    fn submit(&self, operation: InFlight) -> Submitted {
        self.state.submit(operation)
    }

    fn cancel(&self, operation: OperationId) -> Option<InFlight> {
        self.state.cancel(operation)
    }

    fn watch(&self, interest: Interest, ticket: Ticket, waker: &Waker) -> Option<Ticket> {
        self.state.watch(interest, ticket, waker)
    }

    fn watch_untried(&self, interest: Interest, waker: &Waker) -> Option<Ticket> {
        self.state.watch_untried(interest, waker)
    }

    fn unwatch(&self, interest: Interest, ticket: Ticket) {
        self.state.unwatch(interest, ticket);
    }

    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.state.read(buffer)
    }

    fn try_read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let length = buffers.iter().map(|buffer| buffer.len()).sum();
        if self.state.is_empty_transfer(length) {
            return Ok(0);
        }
        self.state.attempt(Interest::Read, |socket, checked| {
            let read = calls::read_vectored(socket, buffers)?;
            if buffers.len() <= calls::BUFFERS_TAKEN {
                self.state.report_read(read, length, checked);
            }
            Ok(read)
        })
    }

    fn try_read_spare(&self, buffer: &mut SpareBuffer<'_>) -> io::Result<()> {
        let length = buffer.remaining();
        if self.state.is_empty_transfer(length) {
            return Ok(());
        }
        self.state.attempt(Interest::Read, |socket, checked| {
            let read = calls::reference(socket).recv(buffer.unfilled())?;
            // SAFETY: the kernel has written this many bytes to the beginning of `unfilled`.
            unsafe { buffer.advance(read) };
            self.state.report_read(read, length, checked);
            Ok(())
        })
    }

    fn try_peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.state.is_empty_transfer(buffer.len()) {
            return Ok(0);
        }
        self.state.attempt(Interest::Read, |socket, _| calls::peek(socket, buffer))
    }

    fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
        self.state.write(buffer)
    }

    fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        let length = buffers.iter().map(|buffer| buffer.len()).sum();
        if self.state.is_empty_transfer(length) {
            return Ok(0);
        }
        self.state.attempt(Interest::Write, |socket, checked| {
            let written = calls::write_vectored(socket, buffers)?;
            if buffers.len() <= calls::BUFFERS_TAKEN {
                self.state.report_written(written, length, checked);
            }
            Ok(written)
        })
    }

    fn try_io(&self, interest: Interest, io: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        self.state.attempt(interest, |_, _| io())
    }

    fn try_accept(&self) -> io::Result<Accepted> {
        let (socket, peer) = self.state.attempt(Interest::Read, |socket, _| calls::accept(socket))?;
        Ok(Accepted { source: Self::register(&self.state.driver, socket)?, peer })
    }

    fn try_receive_from(&self, buffer: &mut [u8]) -> io::Result<(usize, Address)> {
        self.state.attempt(Interest::Read, |socket, _| calls::receive_from(socket, buffer))
    }

    fn try_peek_from(&self, buffer: &mut [u8]) -> io::Result<(usize, Address)> {
        self.state.attempt(Interest::Read, |socket, _| calls::peek_from(socket, buffer))
    }

    fn try_send_to(&self, buffer: &[u8], to: &Address) -> io::Result<usize> {
        self.state.attempt(Interest::Write, |socket, _| calls::send_to(socket, buffer, to))
    }

    fn connect_datagrams(&self, to: &Address) -> io::Result<()> {
        calls::connect_datagrams(self.socket(), to)
    }

    fn bind(&self, at: &Address) -> io::Result<()> {
        calls::reference(self.socket()).bind(&addresses::to_any(at)?)
    }

    fn shut_down(&self, how: Shutdown) -> io::Result<()> {
        calls::shut_down(self.socket(), how)
    }

    fn local_address(&self) -> io::Result<Address> {
        addresses::of_any(&calls::reference(self.socket()).local_addr()?)
    }

    fn peer_address(&self) -> io::Result<Address> {
        addresses::of_any(&calls::reference(self.socket()).peer_addr()?)
    }

    fn set_option(&self, option: SocketOption) -> io::Result<()> {
        options::set(self.socket(), option)
    }

    fn option(&self, option: SocketOption) -> io::Result<SocketOption> {
        options::get(self.socket(), option)
    }

    fn join_multicast(&self, group: &MulticastGroup) -> io::Result<()> {
        options::set_membership(self.socket(), group, true)
    }

    fn leave_multicast(&self, group: &MulticastGroup) -> io::Result<()> {
        options::set_membership(self.socket(), group, false)
    }

    #[cfg(unix)]
    fn peer_credentials(&self) -> io::Result<PeerCredentials> {
        credentials::of_peer(self.state.socket.handle())
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        calls::reference(self.socket()).take_error()
    }

    fn duplicate(&self) -> io::Result<StandardSocket> {
        self.state.duplicate()
    }

    #[cfg(unix)]
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        Some(self.state.socket.handle())
    }

    #[cfg(windows)]
    fn handle(&self) -> Option<std::os::windows::io::BorrowedSocket<'_>> {
        Some(self.state.socket.handle())
    }
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64", not(feature = "loom")))]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;

    use convoke_io::driver::Driver;
    use convoke_io::transfer::{Inward, Transfer};
    use convoke_task::block_on;

    use super::*;
    use crate::PollDriver;

    /// Waiting sockets are many. With the two counts of its `Arc` this is 104 bytes, which fits into the 112
    /// bytes of an allocator that rounds to 16 and needs a word for itself.
    #[test]
    fn a_socket_is_104_bytes_with_its_counts() {
        assert!(2 * size_of::<usize>() + size_of::<PollSource>() <= 104);
    }

    /// Without edges the kernel is asked for each event, and may refuse.
    #[test]
    fn a_kernel_that_refuses_to_report_events_fails_the_waiters() {
        let driver = PollDriver::portable_without_edges().unwrap();
        let (near, _far) = crate::sockets::pair().unwrap();
        let source = PollSource::unconnected(&driver.shared, near).unwrap();
        source.state.add().unwrap();
        assert_eq!(source.try_read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        // The kernel does not know the socket any more.
        driver.shared.poller.delete(source.state.socket.handle());
        let woken = Arc::new(Woken::default());
        let ticket = source.watch(Interest::Read, Ticket::NONE, &Waker::from(woken.clone()));
        assert!(ticket.is_some() && woken.0.load(Ordering::Relaxed), "the watcher is woken");
        let error = source.try_read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let read = block_on(async { Transfer::<_, Inward>::new(source.clone(), [0_u8; 1]).await });
        assert_eq!(read.unwrap().0.unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(driver.in_flight(), 0);
    }

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}
