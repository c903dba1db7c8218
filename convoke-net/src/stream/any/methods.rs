//! The macros that write the traits and the methods of erased streams.

/// Implements reading for a type: the trait, which calls the stream that `$inner` names, and the methods.
macro_rules! reads {
    ([$($generics:tt)*] $type:ty, $this:ident => $inner:expr) => {
        impl<$($generics)*> futures_io::AsyncRead for $type {
            fn poll_read(
                self: core::pin::Pin<&mut Self>,
                cx: &mut core::task::Context<'_>,
                buffer: &mut [u8],
            ) -> core::task::Poll<std::io::Result<usize>> {
                let $this = self.get_mut();
                core::pin::Pin::new(&mut *$inner).poll_read(cx, buffer)
            }

            fn poll_read_vectored(
                self: core::pin::Pin<&mut Self>,
                cx: &mut core::task::Context<'_>,
                buffers: &mut [std::io::IoSliceMut<'_>],
            ) -> core::task::Poll<std::io::Result<usize>> {
                let $this = self.get_mut();
                core::pin::Pin::new(&mut *$inner).poll_read_vectored(cx, buffers)
            }
        }

        impl<$($generics)*> $type {
            /// Reads the available bytes. Waits for at least one, unless the buffer is empty.
            ///
            /// - *Completes with* the number of bytes, zero at the end of the stream; an error of the stream;
            ///   or stopped, as the stream is.
            /// - *If dropped*, nothing was read.
            /// - *Runs on* the current task.
            ///
            /// ```
            /// use convoke::io::AnyStream;
            ///
            /// async fn some(stream: &mut AnyStream) -> std::io::Result<usize> {
            ///     stream.read(&mut [0; 512]).await
            /// }
            /// ```
            pub fn read<'r>(
                &'r mut self,
                buffer: &'r mut [u8],
            ) -> impl Future<Output = std::io::Result<usize>> + Send + 'r {
                core::future::poll_fn(move |cx| {
                    let stream = core::pin::Pin::new(&mut *self);
                    crate::stream::step::poll_step(cx, |cx| {
                        futures_io::AsyncRead::poll_read(stream, cx, buffer)
                    })
                })
            }

            /// Reads until the buffer is full: see [`read_exact`](crate::stream::read_exact()).
            pub fn read_exact<'r>(&'r mut self, buffer: &'r mut [u8]) -> crate::stream::ReadExact<'r, Self> {
                crate::stream::read_exact(self, buffer)
            }
        }
    };
}

/// Implements writing for a type: the trait, which calls the stream that `$inner` names, and the methods.
macro_rules! writes {
    ([$($generics:tt)*] $type:ty, $this:ident => $inner:expr) => {
        impl<$($generics)*> futures_io::AsyncWrite for $type {
            fn poll_write(
                self: core::pin::Pin<&mut Self>,
                cx: &mut core::task::Context<'_>,
                buffer: &[u8],
            ) -> core::task::Poll<std::io::Result<usize>> {
                let $this = self.get_mut();
                core::pin::Pin::new(&mut *$inner).poll_write(cx, buffer)
            }

            fn poll_write_vectored(
                self: core::pin::Pin<&mut Self>,
                cx: &mut core::task::Context<'_>,
                buffers: &[std::io::IoSlice<'_>],
            ) -> core::task::Poll<std::io::Result<usize>> {
                let $this = self.get_mut();
                core::pin::Pin::new(&mut *$inner).poll_write_vectored(cx, buffers)
            }

            fn poll_flush(
                self: core::pin::Pin<&mut Self>,
                cx: &mut core::task::Context<'_>,
            ) -> core::task::Poll<std::io::Result<()>> {
                let $this = self.get_mut();
                core::pin::Pin::new(&mut *$inner).poll_flush(cx)
            }

            fn poll_close(
                self: core::pin::Pin<&mut Self>,
                cx: &mut core::task::Context<'_>,
            ) -> core::task::Poll<std::io::Result<()>> {
                let $this = self.get_mut();
                core::pin::Pin::new(&mut *$inner).poll_close(cx)
            }
        }

        impl<$($generics)*> $type {
            /// Writes as many bytes as fit. Waits until at least one fits, unless the buffer is empty.
            ///
            /// - *Completes with* the number of bytes; an error of the stream; or stopped, as the stream is.
            /// - *If dropped*, nothing was written.
            /// - *Runs on* the current task.
            ///
            /// ```
            /// use convoke::io::AnyStream;
            ///
            /// async fn some(stream: &mut AnyStream) -> std::io::Result<usize> {
            ///     stream.write(b"word").await
            /// }
            /// ```
            pub fn write<'w>(
                &'w mut self,
                buffer: &'w [u8],
            ) -> impl Future<Output = std::io::Result<usize>> + Send + 'w {
                core::future::poll_fn(move |cx| {
                    let stream = core::pin::Pin::new(&mut *self);
                    crate::stream::step::poll_step(cx, |cx| {
                        futures_io::AsyncWrite::poll_write(stream, cx, buffer)
                    })
                })
            }

            /// Writes the whole buffer: see [`write_all`](crate::stream::write_all()).
            pub fn write_all<'w>(&'w mut self, buffer: &'w [u8]) -> crate::stream::WriteAll<'w, Self> {
                crate::stream::write_all(self, buffer)
            }

            /// Writes what the stream has buffered.
            ///
            /// - *Completes with* `()`; an error of the stream; or stopped, as the stream is.
            /// - *If dropped*, a part may have been written.
            /// - *Runs on* the current task.
            ///
            /// ```
            /// use convoke::io::AnyStream;
            ///
            /// async fn greet(stream: &mut AnyStream) -> std::io::Result<()> {
            ///     stream.write_all(b"hello").await?;
            ///     stream.flush().await
            /// }
            /// ```
            pub fn flush(&mut self) -> impl Future<Output = std::io::Result<()>> + Send + '_ {
                core::future::poll_fn(|cx| {
                    let stream = core::pin::Pin::new(&mut *self);
                    crate::stream::step::poll_step(cx, |cx| futures_io::AsyncWrite::poll_flush(stream, cx))
                })
            }

            /// Writes what the stream has buffered, and ends its write side: the peer reads the end of the
            /// stream.
            ///
            /// - *Completes with* `()`; an error of the stream; or stopped, as the stream is.
            /// - *If dropped*, the write side may have ended or not.
            /// - *Runs on* the current task.
            ///
            /// ```
            /// use convoke::io::AnyStream;
            ///
            /// async fn last(stream: &mut AnyStream) -> std::io::Result<()> {
            ///     stream.write_all(b"bye").await?;
            ///     stream.shutdown().await
            /// }
            /// ```
            pub fn shutdown(&mut self) -> impl Future<Output = std::io::Result<()>> + Send + '_ {
                core::future::poll_fn(|cx| {
                    let stream = core::pin::Pin::new(&mut *self);
                    crate::stream::step::poll_step(cx, |cx| futures_io::AsyncWrite::poll_close(stream, cx))
                })
            }
        }
    };
}

/// Implements `Debug` without fields: the type of the stream is not known.
macro_rules! debug {
    ([$($generics:tt)*] $type:ty, $name:literal) => {
        impl<$($generics)*> core::fmt::Debug for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct($name).finish_non_exhaustive()
            }
        }
    };
}

pub(super) use {debug, reads, writes};
