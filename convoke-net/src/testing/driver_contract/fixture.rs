//! The fixture of the suite: a context over a new driver, and connections in it.

use core::future::Future;
use core::net::SocketAddr;
use std::io;
use std::sync::Arc;

use convoke_task::{checkpoint, try_join};

use super::DriverHarness;
use crate::net::{TcpListener, TcpStream};
use convoke_io::driver::Driver;
use convoke_io::{IoContext, current_driver};

impl DriverHarness {
    /// Creates a driver.
    pub(super) fn driver(&self) -> Arc<dyn Driver> {
        (self.make)()
    }

    /// Returns an address with port 0, which selects a free port.
    pub(super) fn address(&self) -> SocketAddr {
        SocketAddr::new(self.at, 0)
    }

    /// Runs a program on a new context, and checks that nothing is left in flight.
    #[track_caller]
    pub(super) fn run<T, F: Future<Output = io::Result<T>>>(&self, program: F) -> T {
        let context = IoContext::new(self.driver());
        let ended = context.block_on(program).unwrap().expect("the program succeeds");
        assert_eq!(context.driver().in_flight(), 0, "something is left in flight");
        ended
    }

    /// Creates both ends of a connection.
    pub(super) async fn connection(&self) -> io::Result<(TcpStream, TcpStream)> {
        let listener = TcpListener::bind(self.address()).await?;
        let address = listener.local_addr()?;
        let (near, (far, _)) = try_join((TcpStream::connect(address), listener.accept())).await?;
        Ok((near, far))
    }
}

/// Lets other tasks run until this many operations are in flight.
pub(super) async fn in_flight(operations: usize) {
    let driver = current_driver().expect("the suite runs on a context");
    while driver.in_flight() != operations {
        checkpoint().await;
    }
}

/// Writes until the buffers of the connection are full; the peer does not read. Returns the number of bytes.
pub(super) fn fill(stream: &TcpStream) -> io::Result<usize> {
    let source = &stream.source;
    let mut written = 0;
    loop {
        match source.try_write(&[0; 1 << 16]) {
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(written),
            Err(error) => return Err(error),
        }
    }
}

/// Reads and discards this many bytes.
pub(super) async fn skip(stream: &TcpStream, mut bytes: usize) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    while bytes > 0 {
        let most = bytes.min(buffer.len());
        match stream.read(&mut buffer[..most]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => bytes -= read,
        }
    }
    Ok(())
}

/// Reads until the end of the stream.
pub(super) async fn rest(stream: &TcpStream) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    let mut buffer = vec![0; 1 << 12];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(all),
            read => all.extend_from_slice(&buffer[..read]),
        }
    }
}
