//! Streams in memory, copies and erased types: how they end, how they are stopped, and the progress that they
//! report.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use convoke::io::{
    AnyStream, Closing, Duplex, Progress, copy, copy_bidirectional, duplex, read_exact, write_all,
};
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::stopped;
use futures_io::{AsyncRead, AsyncWrite};

fn run<T: Send + 'static>(program: impl Future<Output = io::Result<T>> + Send + 'static) -> T {
    sync_wait(task(program)).unwrap().unwrap()
}

#[test]
fn bytes_written_to_one_end_are_read_from_the_other() {
    let received = run(async {
        let (mut near, mut far) = duplex(4);
        let mut received = vec![0; 10];
        try_join((write_all(&mut near, b"0123456789"), read_exact(&mut far, &mut received))).await?;
        Ok(received)
    });
    assert_eq!(received, b"0123456789");
}

#[test]
fn bytes_before_the_end_are_read_after_a_drop() {
    let error = sync_wait(task(async {
        let (mut near, mut far) = duplex(16);
        write_all(&mut near, b"four").await.unwrap();
        drop(near);
        let mut received = [0; 8];
        let error = read_exact(&mut far, &mut received).await.unwrap_err();
        assert_eq!(&received[..4], b"four");
        error
    }))
    .unwrap();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(error.to_string(), "the stream ended after 4 of 8 bytes");
}

#[test]
fn writing_to_a_dropped_end_is_an_error() {
    let error = sync_wait(task(async {
        let (mut near, far) = duplex(16);
        drop(far);
        write_all(&mut near, b"four").await.unwrap_err()
    }))
    .unwrap();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn a_stopped_copy_reports_its_progress() {
    let bytes = run(async {
        let (mut source, mut sink) = (duplex(64), duplex(8));
        write_all(&mut source.0, &[7; 20]).await?;
        let progress = Progress::new();
        // The copy is not read: eight bytes fit, then it waits until the timeout.
        let copied =
            timeout(Duration::from_millis(1), copy(&mut source.1, &mut sink.0).progress(&progress)).await;
        assert!(copied.is_err());
        let mut received = [0; 8];
        read_exact(&mut sink.1, &mut received).await?;
        assert_eq!(received, [7; 8]);
        Ok(progress.bytes())
    });
    assert_eq!(bytes, 8);
}

#[test]
fn a_proxy_copies_both_directions_and_both_ends() {
    let (there, back) = run(async {
        let ((mut client, mut front), (mut rear, mut server)) = (duplex(3), duplex(5));
        let ((), (), counts) = try_join((
            async {
                write_all(&mut client, b"question").await?;
                finish(&mut client).await?;
                let mut answer = Vec::new();
                read_to_end(&mut client, &mut answer).await?;
                assert_eq!(answer, b"the answer");
                io::Result::Ok(())
            },
            async {
                let mut question = Vec::new();
                read_to_end(&mut server, &mut question).await?;
                assert_eq!(question, b"question");
                write_all(&mut server, b"the answer").await?;
                finish(&mut server).await
            },
            copy_bidirectional(&mut front, &mut rear),
        ))
        .await?;
        Ok(counts)
    });
    assert_eq!((there, back), (8, 10));
}

#[test]
fn an_erased_stream_is_split_reunited_and_downcast() {
    run(async {
        let (near, mut far) = duplex(16);
        let erased = AnyStream::new(AnyStream::new(near));
        assert!(erased.downcast_ref::<Duplex>().is_some());
        let (mut reads, mut writes) = erased.split();
        write_all(&mut writes, b"there").await?;
        let mut received = [0; 5];
        read_exact(&mut far, &mut received).await?;
        write_all(&mut far, b"back!").await?;
        read_exact(&mut reads, &mut received).await?;
        assert_eq!(&received, b"back!");
        let (other, _) = duplex(1);
        let (stranger, _) = AnyStream::new(other).split();
        let (_, writes) = stranger.reunite(writes).unwrap_err();
        let erased = reads.reunite(writes).unwrap();
        let Err(erased) = erased.downcast::<convoke::net::TcpStream>().map(drop) else {
            panic!("it is not a socket")
        };
        assert!(erased.downcast::<Duplex>().is_ok());
        Ok(())
    });
}

async fn finish(stream: &mut Duplex) -> io::Result<()> {
    std::future::poll_fn(|cx| std::pin::Pin::new(&mut *stream).poll_close(cx)).await
}

async fn read_to_end(stream: &mut Duplex, all: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = [0; 4];
    loop {
        let read =
            std::future::poll_fn(|cx| std::pin::Pin::new(&mut *stream).poll_read(cx, &mut buffer)).await?;
        if read == 0 {
            return Ok(());
        }
        all.extend_from_slice(&buffer[..read]);
    }
}

/// A stream that records its events. Closing takes two polls, and may fail.
struct Slow {
    events: Arc<Mutex<Vec<&'static str>>>,
    steps: u32,
    fails: bool,
}

impl AsyncWrite for Slow {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        self.events.lock().unwrap().push("written");
        Poll::Ready(Ok(buffer.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.steps > 0 {
            self.steps -= 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.events.lock().unwrap().push("closed");
        Poll::Ready(if self.fails { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) })
    }
}

#[test]
fn a_stream_is_closed_on_every_exit_and_the_bodys_error_wins() {
    /// Leaves a body in one of three ways; closing may fail. Returns the outcome and the events.
    async fn leaves(by: &'static str, fails: bool) -> (Option<io::Result<()>>, Vec<&'static str>) {
        let events = Arc::new(Mutex::new(Vec::new()));
        let stream = Closing::writer(Slow { events: events.clone(), steps: 3, fails });
        let ended = catch_stopped(using(stream, async |mut stream| {
            write_all(&mut **stream, b"some").await?;
            match by {
                "a value" => Ok(()),
                "an error" => Err(io::ErrorKind::InvalidData.into()),
                _ => stopped().await,
            }
        }));
        let ended = ended.await.ok();
        let events = events.lock().unwrap().clone();
        (ended, events)
    }
    let kind = |ended: Option<io::Result<()>>| ended.map(|ended| ended.map_err(|error| error.kind()));
    for (by, fails, expected) in [
        ("a value", false, Some(Ok(()))),
        ("a value", true, Some(Err(io::ErrorKind::BrokenPipe))),
        ("an error", false, Some(Err(io::ErrorKind::InvalidData))),
        ("an error", true, Some(Err(io::ErrorKind::InvalidData))),
        ("a stop", false, None),
    ] {
        let (ended, events) = sync_wait(task(leaves(by, fails))).unwrap();
        assert_eq!((kind(ended), events), (expected, vec!["written", "closed"]), "by {by}, fails: {fails}");
    }
}

struct Throws;

impl Wake for Throws {
    fn wake(self: Arc<Self>) {
        panic!("a panic of a waker");
    }
}

#[derive(Default)]
struct Told(AtomicBool);

impl Wake for Told {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn a_panicking_waker_does_not_affect_the_other_end() {
    let (mut near, mut far) = duplex(4);
    let throws = Waker::from(Arc::new(Throws));
    let (mut panicking, mut quiet) = (Context::from_waker(&throws), Context::from_waker(Waker::noop()));
    let mut buffer = [0; 4];
    assert!(Pin::new(&mut far).poll_read(&mut panicking, &mut buffer).is_pending());
    let written = Pin::new(&mut near).poll_write(&mut quiet, b"word");
    assert!(matches!(written, Poll::Ready(Ok(4))), "{written:?}");
    assert!(Pin::new(&mut near).poll_write(&mut panicking, b"more").is_pending());
    let read = Pin::new(&mut far).poll_read(&mut quiet, &mut buffer);
    assert!(matches!(read, Poll::Ready(Ok(4))) && buffer == *b"word", "{read:?}");
}

#[test]
fn dropping_an_end_wakes_reader_and_writer_even_if_a_waker_panics() {
    let (near, mut far) = duplex(4);
    let (woken, throws) = (Arc::new(Told::default()), Waker::from(Arc::new(Throws)));
    let told_waker = Waker::from(woken.clone());
    let (mut panicking, mut counting) = (Context::from_waker(&throws), Context::from_waker(&told_waker));
    assert!(Pin::new(&mut far).poll_write(&mut counting, b"word").is_ready());
    assert!(Pin::new(&mut far).poll_write(&mut counting, b"more").is_pending());
    assert!(Pin::new(&mut far).poll_read(&mut panicking, &mut [0; 4]).is_pending());
    drop(near);
    assert!(woken.0.load(Ordering::Acquire), "the writer is woken");
    assert!(matches!(Pin::new(&mut far).poll_write(&mut counting, b"more"), Poll::Ready(Err(_))));
}
