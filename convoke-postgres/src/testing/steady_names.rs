//! Names of prepared statements that have the same length in every run.
//!
//! tokio-postgres counts them per process: `s0`, `s1`, … In a simulation, in which chance cuts reads and writes short, a longer name
//! makes another run: a seed would not repeat its run after other seeds. This file raises the count to a number with many digits,
//! so that all names of a process have the same length.

use core::future::Future;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use std::io;
use std::sync::Once;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{Config, NoTls};

/// The count that is reached: up to 90,000 more have the same number of digits.
const COUNT: usize = 10_000;

/// Moves the count on, once in a process.
pub(super) fn steady_names() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut cx = Context::from_waker(Waker::noop());
        let config = Config::new().user("nobody").clone();
        let connects = pin!(config.connect_raw(Greeting(GREETING), NoTls));
        let Poll::Ready(Ok((client, connection))) = connects.poll(&mut cx) else { return };
        // Each statement is named, and then fails at once.
        drop(connection);
        for _ in 0..COUNT {
            let _ = pin!(client.prepare("")).poll(&mut cx);
        }
    });
}

/// Messages of a server to a client that needs no password: it is welcome, and no transaction is open.
const GREETING: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

/// A connection whose server has said everything that it will say, and hears nothing.
struct Greeting(&'static [u8]);

impl AsyncRead for Greeting {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Greeting {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
