//! Streams with an erased type: owned and borrowed, for one direction or both, and halves. All of them read,
//! write and pass several buffers on in one call.

use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};
use std::pin::Pin;

use convoke::io::{
    AnyReadStream, AnyReadStreamMut, AnyStream, AnyStreamMut, AnyWriteStream, AnyWriteStreamMut, Duplex,
    duplex,
};
use convoke::prelude::*;
use convoke::task::stopped;
use futures_io::{AsyncRead, AsyncWrite};
use std::task::{Context, Poll};

fn run(program: impl Future<Output = io::Result<()>>) {
    block_on(program).unwrap().unwrap();
}

/// A stream that takes all buffers of a vectored call, and nothing else.
#[derive(Default)]
struct Vectored(Vec<u8>);

impl AsyncRead for Vectored {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut [u8]) -> Poll<io::Result<usize>> {
        panic!("the buffers were not passed on together");
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        buffers.iter_mut().for_each(|buffer| buffer.fill(7));
        Poll::Ready(Ok(buffers.iter().map(|buffer| buffer.len()).sum()))
    }
}

impl AsyncWrite for Vectored {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        panic!("the buffers were not passed on together");
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        buffers.iter().for_each(|buffer| self.0.extend_from_slice(buffer));
        Poll::Ready(Ok(buffers.iter().map(|buffer| buffer.len()).sum()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

async fn reads_vectored(mut stream: impl AsyncRead + Unpin) -> io::Result<()> {
    let (mut one, mut two) = ([0; 2], [0; 3]);
    let mut buffers = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
    assert_eq!(poll_fn(|cx| Pin::new(&mut stream).poll_read_vectored(cx, &mut buffers)).await?, 5);
    assert_eq!((one, two), ([7; 2], [7; 3]));
    Ok(())
}

async fn writes_vectored(mut stream: impl AsyncWrite + Unpin) -> io::Result<()> {
    let buffers = [IoSlice::new(b"one"), IoSlice::new(b"four")];
    assert_eq!(poll_fn(|cx| Pin::new(&mut stream).poll_write_vectored(cx, &buffers)).await?, 7);
    Ok(())
}

#[test]
fn several_buffers_are_passed_on_in_one_call() {
    run(async {
        let erased = || AnyStream::new(Vectored::default());
        reads_vectored(erased()).await?;
        writes_vectored(erased()).await?;
        let (reader, writer) = erased().split();
        reads_vectored(reader).await?;
        writes_vectored(writer).await?;
        reads_vectored(AnyReadStream::new(Vectored::default())).await?;
        writes_vectored(AnyWriteStream::new(Vectored::default())).await?;
        let mut stream = Vectored::default();
        reads_vectored(AnyStreamMut::new(&mut stream)).await?;
        writes_vectored(AnyStreamMut::new(&mut stream)).await?;
        reads_vectored(AnyReadStreamMut::new(&mut stream)).await?;
        writes_vectored(AnyWriteStreamMut::new(&mut stream)).await?;
        assert_eq!(stream.0, b"onefouronefour");
        Ok(())
    });
}

#[test]
fn an_erased_stream_reads_and_writes_by_methods() {
    run(async {
        let (near, far) = duplex(64);
        let (mut near, mut far) = (AnyStream::new(near), AnyStream::new(far));
        assert_eq!(near.write(b"wo").await?, 2);
        near.write_all(b"rd").await?;
        near.flush().await?;
        near.shutdown().await?;
        let mut word = [0; 4];
        assert_eq!(far.read(&mut word[..1]).await?, 1);
        far.read_exact(&mut word[1..]).await?;
        assert_eq!(&word, b"word");
        assert_eq!(far.read(&mut word).await?, 0, "the write side was shut down");
        assert!(near.write(b"more").await.is_err());
        assert!(near.downcast::<Duplex>().is_ok());
        Ok(())
    });
}

#[test]
fn streams_for_one_direction_and_halves_have_the_methods_too() {
    run(async {
        let (near, far) = duplex(64);
        let (mut reader, mut writer) = (AnyReadStream::new(near), AnyWriteStream::new(far));
        writer.write_all(b"one way").await?;
        let mut words = [0; 7];
        reader.read_exact(&mut words).await?;
        assert_eq!(&words, b"one way");
        let (near, far) = duplex(64);
        let ((_, mut writer), (mut reader, _)) = (AnyStream::new(near).split(), AnyStream::new(far).split());
        writer.write_all(b"by half").await?;
        reader.read_exact(&mut words).await?;
        assert_eq!(&words, b"by half");
        Ok(())
    });
}

/// Passes a borrowed stream on, and uses it afterwards.
async fn twice(mut stream: AnyStreamMut<'_>) -> io::Result<()> {
    async fn once(mut stream: AnyStreamMut<'_>) -> io::Result<()> {
        stream.write_all(b"go").await
    }
    once(stream.reborrow()).await?;
    once(stream).await
}

#[test]
fn a_borrowed_stream_is_used_by_its_owner_afterwards() {
    run(async {
        let (mut near, mut far) = duplex(64);
        twice(AnyStreamMut::new(&mut near)).await?;
        AnyWriteStreamMut::new(&mut near).write_all(b"!").await?;
        let mut received = [0; 5];
        AnyReadStreamMut::new(&mut far).read_exact(&mut received).await?;
        assert_eq!(&received, b"gogo!");
        Ok(())
    });
}

#[test]
fn a_stop_that_was_caught_becomes_an_io_error() {
    async fn reads() -> io::Result<()> {
        catch_stopped(async { stopped().await }).await?;
        Ok(())
    }
    let error = block_on(reads()).unwrap().unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (io::ErrorKind::Other, "stopped by itself"));
}
