//! What the parts of the suite play on: a context over a driver of its own, and connections within it.

use core::future::Future;
use core::net::SocketAddr;
use std::io;
use std::sync::Arc;

use convoke_task::{checkpoint, try_join};

use super::Harness;
use crate::net::{TcpListener, TcpStream};
use convoke_io::driver::Driver;
use convoke_io::{IoContext, current_driver};

impl Harness {
    /// A new driver.
    pub(super) fn driver(&self) -> Arc<dyn Driver> {
        (self.make)()
    }

    /// Any free port.
    pub(super) fn address(&self) -> SocketAddr {
        SocketAddr::new(self.at, 0)
    }

    /// Runs a program on a context of its own, and then looks that nothing is left in flight.
    #[track_caller]
    pub(super) fn run<T, F: Future<Output = io::Result<T>>>(&self, program: F) -> T {
        let context = IoContext::new(self.driver());
        let ended = context.run_until(program).unwrap().expect("nothing goes wrong here");
        assert_eq!(context.driver().in_flight(), 0, "something is left in flight");
        ended
    }

    /// Two ends of a connection.
    pub(super) async fn connection(&self) -> io::Result<(TcpStream, TcpStream)> {
        let listener = TcpListener::bind(self.address()).await?;
        let address = listener.local_addr()?;
        let (near, (far, _)) = try_join((TcpStream::connect(address), listener.accept())).await?;
        Ok((near, far))
    }
}

/// Lets others run until so many operations are in flight.
pub(super) async fn in_flight(operations: usize) {
    let driver = current_driver().expect("the suite runs on a context");
    while driver.in_flight() != operations {
        checkpoint().await;
    }
}

/// Writes until the peer, who does not read, has no more room. Says how much that was.
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

/// Reads so many bytes, and does not look at them.
pub(super) async fn skip(stream: &TcpStream, mut bytes: usize) -> io::Result<()> {
    let mut room = vec![0; 1 << 16];
    while bytes > 0 {
        let most = bytes.min(room.len());
        match stream.read(&mut room[..most]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => bytes -= read,
        }
    }
    Ok(())
}

/// Reads all that comes until the end.
pub(super) async fn rest(stream: &TcpStream) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    let mut room = vec![0; 1 << 12];
    loop {
        match stream.read(&mut room).await? {
            0 => return Ok(all),
            read => all.extend_from_slice(&room[..read]),
        }
    }
}
