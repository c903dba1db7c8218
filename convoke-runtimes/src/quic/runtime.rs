//! quinn's trait of runtimes.

use core::future::Future;
use core::pin::Pin;
use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Instant;

use ::quinn::{AsyncTimer, AsyncUdpSocket, Runtime};
use convoke_exec::time::now;
use convoke_io::context::current_driver;
use convoke_io::driver::StandardSocket;

use super::socket::Socket;
use super::timer::Timer;
use crate::background::Background;

/// The runtime of quinn's endpoints.
#[derive(Debug)]
pub(super) struct OnConvoke {
    pub(super) background: Arc<Background>,
}

impl Runtime for OnConvoke {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        Box::pin(Timer::new(at))
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.background.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        let source = current_driver()?.adopt(StandardSocket::UdpSocket(socket))?;
        Ok(Arc::new(Socket::new(source)?))
    }

    fn now(&self) -> Instant {
        now()
    }
}
