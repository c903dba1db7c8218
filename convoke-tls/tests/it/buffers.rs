//! The memory of streams that wait.

use std::pin::Pin;
use std::task::Poll;

use convoke::io::{read_exact, write_all};
use convoke::prelude::*;
use convoke_tls::TlsStream;
use futures_io::{AsyncRead, AsyncWrite};

use crate::exchange::pair;

/// Returns the size of the buffers of a stream.
fn memory<S: std::fmt::Debug>(stream: &TlsStream<S>) -> usize {
    let text = format!("{stream:?}");
    let (_, number) = text.split_once("buffer_bytes: ").unwrap();
    number.split_once(|c: char| !c.is_ascii_digit()).unwrap().0.parse().unwrap()
}

#[convoke::test(virtual_time)]
async fn an_idle_stream_has_no_buffers() {
    let (mut near, mut far) = pair(1 << 16).await;
    for count in [1, 1000, 16_000] {
        let sent = vec![7; count];
        write_all(&mut near, &sent).await.unwrap();
        read_exact(&mut far, &mut vec![0; count]).await.unwrap();
        write_all(&mut far, &sent).await.unwrap();
        read_exact(&mut near, &mut vec![0; count]).await.unwrap();
        assert_eq!((memory(&near), memory(&far)), (0, 0), "after {count} bytes both ways");
        // A read that waits has none either.
        let mut byte = [0];
        let waits =
            std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut near).poll_read(cx, &mut byte).is_pending()));
        assert!(waits.await);
        assert_eq!(memory(&near), 0);
    }
}

#[convoke::test(virtual_time)]
async fn a_record_that_is_not_whole_takes_the_memory_of_what_was_received() {
    let (mut near, mut far) = pair(50).await;
    // The tickets of the server arrive before anything else.
    let told = async {
        write_all(&mut far, b"!").await?;
        std::future::poll_fn(|cx| Pin::new(&mut far).poll_flush(cx)).await
    };
    try_join((told, read_exact(&mut near, &mut [0]))).await.unwrap();
    let written = std::future::poll_fn(|cx| Pin::new(&mut near).poll_write(cx, &[7; 10_000])).await;
    assert_eq!(written.unwrap(), 10_000);
    let mut byte = [0];
    for received in [50, 100] {
        let waits =
            std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut far).poll_read(cx, &mut byte).is_pending()));
        assert!(waits.await);
        assert_eq!(memory(&far), received);
        // The next part.
        let flushed = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut near).poll_flush(cx).is_pending()));
        assert!(flushed.await);
    }
    let mut heard = vec![0; 10_000];
    let (read, flushed) = join((
        read_exact(&mut far, &mut heard),
        std::future::poll_fn(|cx| Pin::new(&mut near).poll_flush(cx)),
    ))
    .await;
    assert!(read.is_ok() && flushed.is_ok() && heard == [7; 10_000]);
    assert_eq!((memory(&near), memory(&far)), (0, 0));
}
