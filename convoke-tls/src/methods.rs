//! Reading and writing as methods, beside the traits of `futures-io`: as sockets have them.

use core::future::{Future, poll_fn};
use core::pin::Pin;
use std::io;

use convoke_net::stream::{ReadExact, WriteAll, read_exact, write_all};
use futures_io::{AsyncRead, AsyncWrite};

use crate::split::{TlsReadHalf, TlsWriteHalf};
use crate::stream::TlsStream;

macro_rules! reads {
    ($type:ident) => {
        impl<S: AsyncRead + AsyncWrite + Unpin> $type<S> {
            /// Reads the decrypted bytes that are available. Waits for at least one, unless the buffer is empty.
            ///
            /// - *Completes with* the number of bytes, zero after the peer's close_notify; an error of the connection
            ///   or of the protocol; or stopped.
            /// - *If dropped*, nothing was read.
            /// - *Runs on* the current task.
            ///
            /// ```
            /// use convoke::net::TcpStream;
            /// use convoke_tls::TlsStream;
            ///
            /// async fn echo(client: &mut TlsStream<TcpStream>) -> std::io::Result<()> {
            ///     let mut buffer = [0; 4096];
            ///     while let length @ 1.. = client.read(&mut buffer).await? {
            ///         client.write_all(&buffer[..length]).await?;
            ///     }
            ///     Ok(())
            /// }
            /// ```
            pub fn read<'r>(
                &'r mut self,
                buffer: &'r mut [u8],
            ) -> impl Future<Output = io::Result<usize>> + use<'r, S> {
                poll_fn(move |cx| Pin::new(&mut *self).poll_read(cx, buffer))
            }

            /// Reads until the buffer is full: see [`read_exact`](convoke_net::stream::read_exact()).
            pub fn read_exact<'r>(&'r mut self, buffer: &'r mut [u8]) -> ReadExact<'r, Self> {
                read_exact(self, buffer)
            }
        }
    };
}

macro_rules! writes {
    ($type:ident) => {
        impl<S: AsyncRead + AsyncWrite + Unpin> $type<S> {
            /// Encrypts and writes the first bytes of a buffer, at most one record of 16 KiB.
            ///
            /// - *Completes with* the number of bytes that were accepted; an error of the connection or of the
            ///   protocol; or stopped.
            /// - *If dropped*, nothing was accepted.
            /// - *Runs on* the current task.
            ///
            /// ```
            /// use convoke::net::TcpStream;
            /// use convoke_tls::TlsStream;
            ///
            /// async fn some(stream: &mut TlsStream<TcpStream>) -> std::io::Result<usize> {
            ///     stream.write(b"word").await
            /// }
            /// ```
            pub fn write<'w>(
                &'w mut self,
                buffer: &'w [u8],
            ) -> impl Future<Output = io::Result<usize>> + use<'w, S> {
                poll_fn(move |cx| Pin::new(&mut *self).poll_write(cx, buffer))
            }

            /// Writes the whole buffer: see [`write_all`](convoke_net::stream::write_all()).
            pub fn write_all<'w>(&'w mut self, buffer: &'w [u8]) -> WriteAll<'w, Self> {
                write_all(self, buffer)
            }
        }
    };
}

reads!(TlsStream);
reads!(TlsReadHalf);
writes!(TlsStream);
writes!(TlsWriteHalf);
