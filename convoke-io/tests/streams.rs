//! Streams in memory, copies and erased types: how they end, how they are stopped, and what they say of how far they got.

use std::io;
use std::time::Duration;

use convoke::prelude::*;
use convoke::stream::{AnyStream, Duplex, Progress, copy, copy_bidirectional, duplex, read_exact, write_all};

fn run<T: Send + 'static>(program: impl Future<Output = io::Result<T>> + Send + 'static) -> T {
    sync_wait(task(program)).unwrap().unwrap()
}

#[test]
fn what_is_written_to_one_end_is_read_from_the_other() {
    let heard = run(async {
        let (mut near, mut far) = duplex(4);
        let mut heard = vec![0; 10];
        try_join((write_all(&mut near, b"0123456789"), read_exact(&mut far, &mut heard))).await?;
        Ok(heard)
    });
    assert_eq!(heard, b"0123456789");
}

#[test]
fn an_end_that_goes_is_read_to_the_last_byte_and_then_is_the_end() {
    let error = sync_wait(task(async {
        let (mut near, mut far) = duplex(16);
        write_all(&mut near, b"four").await.unwrap();
        drop(near);
        let mut heard = [0; 8];
        let error = read_exact(&mut far, &mut heard).await.unwrap_err();
        assert_eq!(&heard[..4], b"four");
        error
    }))
    .unwrap();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(error.to_string(), "the stream ended after 4 of 8 bytes");
}

#[test]
fn writing_to_an_end_that_is_gone_is_an_error() {
    let error = sync_wait(task(async {
        let (mut near, far) = duplex(16);
        drop(far);
        write_all(&mut near, b"four").await.unwrap_err()
    }))
    .unwrap();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn a_copy_that_is_stopped_says_how_far_it_got() {
    let bytes = run(async {
        let (mut source, mut sink) = (duplex(64), duplex(8));
        write_all(&mut source.0, &[7; 20]).await?;
        let progress = Progress::new();
        // Nobody reads what was copied: eight bytes fit, then it waits until its time is up.
        let copied =
            timeout(Duration::from_millis(1), copy(&mut source.1, &mut sink.0).progress(&progress)).await;
        assert!(copied.is_err());
        let mut heard = [0; 8];
        read_exact(&mut sink.1, &mut heard).await?;
        assert_eq!(heard, [7; 8]);
        Ok(progress.bytes())
    });
    assert_eq!(bytes, 8);
}

#[test]
fn a_proxy_passes_both_directions_and_both_ends() {
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
fn an_erased_stream_is_split_and_put_together_and_found_again() {
    run(async {
        let (near, mut far) = duplex(16);
        let erased = AnyStream::new(AnyStream::new(near));
        assert!(erased.downcast_ref::<Duplex>().is_some());
        let (mut reads, mut writes) = erased.split();
        write_all(&mut writes, b"there").await?;
        let mut heard = [0; 5];
        read_exact(&mut far, &mut heard).await?;
        write_all(&mut far, b"back!").await?;
        read_exact(&mut reads, &mut heard).await?;
        assert_eq!(&heard, b"back!");
        let (other, _) = duplex(1);
        let (stranger, _) = AnyStream::new(other).split();
        let (_, writes) = stranger.reunite(writes).unwrap_err();
        let erased = reads.reunite(writes).unwrap();
        let Err(erased) = erased.downcast::<convoke::net::TcpStream>().map(drop) else {
            panic!("it is no socket")
        };
        assert!(erased.downcast::<Duplex>().is_ok());
        Ok(())
    });
}

async fn finish(stream: &mut Duplex) -> io::Result<()> {
    use futures_io::AsyncWrite;
    std::future::poll_fn(|cx| std::pin::Pin::new(&mut *stream).poll_close(cx)).await
}

async fn read_to_end(stream: &mut Duplex, all: &mut Vec<u8>) -> io::Result<()> {
    use futures_io::AsyncRead;
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
