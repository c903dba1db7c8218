//! The memory that a connection by HTTP/2 may take: windows for bodies of requests, buffers for those of responses.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use convoke::prelude::*;
use convoke::time::now;
use convoke_http::{
    CONNECTION_WINDOW_BYTES, Limits, RequestBody, SEND_BYTES, STREAM_WINDOW_BYTES, StreamedBody, serve,
    streamed,
};
use http::{Request, Response};

use crate::harness::{Client, beside, listener, path, seconds, simulated};

/// A client that begins with HTTP/2, and has no settings.
const HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Returns the window of a stream and of a connection, as the server tells its client.
async fn windows(limits: Limits) -> io::Result<(u32, u32)> {
    let told = AtomicUsize::new(0);
    let windows = std::sync::Mutex::new((65_535, 65_535));
    beside(serve(listener().await?, path).limits(limits), async {
        let client = Client::connect().await?;
        client.stream.write_all(HELLO).await?;
        while told.load(Ordering::Relaxed) < 2 {
            let mut head = [0; 9];
            client.stream.read_exact(&mut head).await?;
            let mut body = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
            client.stream.read_exact(&mut body).await?;
            let mut windows = windows.lock().unwrap();
            match head[3] {
                // SETTINGS: entries of a number and a value. The acknowledgement of ours has none.
                4 if head[4] == 0 => {
                    for entry in body.chunks(6).filter(|entry| entry[..2] == [0, 4]) {
                        windows.0 = u32::from_be_bytes(entry[2..].try_into().unwrap());
                    }
                    told.fetch_add(1, Ordering::Relaxed);
                }
                8 => {
                    windows.1 += u32::from_be_bytes(body.try_into().unwrap());
                    told.fetch_add(1, Ordering::Relaxed);
                }
                _ => {}
            }
        }
        Ok(())
    })
    .await?;
    Ok(windows.into_inner().unwrap())
}

#[test]
fn clients_are_told_the_windows_of_the_limits() {
    simulated(|| async {
        assert_eq!(windows(Limits::new()).await?, (STREAM_WINDOW_BYTES, CONNECTION_WINDOW_BYTES));
        let limits = Limits::new().stream_window_bytes(70_000).connection_window_bytes(200_000);
        assert_eq!(windows(limits).await?, (70_000, 200_000));
        Ok(())
    });
}

/// The requests of a client that reads nothing.
const STREAMS: u32 = 20;

/// Returns how much the responses to a client have written that gives all windows and does not read.
async fn written_ahead(limits: Limits) -> io::Result<usize> {
    const CHUNK: usize = 1024;
    let written = Arc::<AtomicUsize>::default();
    let counted = written.clone();
    let endless = move |_: Request<RequestBody>| {
        let written = counted.clone();
        async move {
            let body = streamed(async move |body| -> io::Result<()> {
                loop {
                    body.send(vec![7; CHUNK]).await?;
                    written.fetch_add(CHUNK, Ordering::Relaxed);
                }
            });
            io::Result::Ok(Response::<StreamedBody>::new(body))
        }
    };
    beside(serve(listener().await?, endless).limits(limits).report(|_| ()), async {
        let client = Client::connect().await?;
        let mut bytes =
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x06\x04\0\0\0\0\0\0\x04\x7f\xff\xff\xff".to_vec();
        bytes.extend_from_slice(b"\0\0\x04\x08\0\0\0\0\0\x7f\xff\0\0");
        for stream in 0..STREAMS {
            bytes.extend_from_slice(b"\0\0\x06\x01\x05");
            bytes.extend_from_slice(&(2 * stream + 1).to_be_bytes());
            bytes.extend_from_slice(b"\x82\x86\x84\x01\x01s");
        }
        client.stream.write_all(&bytes).await?;
        sleep(seconds(1)).await;
        Ok(())
    })
    .await?;
    Ok(written.load(Ordering::Relaxed))
}

#[test]
fn responses_whose_client_does_not_read_wait_at_the_limit() {
    simulated(|| async {
        // What the socket and the connection itself take.
        const OTHERS: usize = 512 * 1024;
        for bytes in [SEND_BYTES, 16 * 1024] {
            let written = written_ahead(Limits::new().send_bytes(bytes)).await?;
            let expected = STREAMS as usize * bytes;
            assert!(
                (expected / 2..expected + OTHERS).contains(&written),
                "{written} with {bytes} for a stream"
            );
        }
        Ok(())
    });
}

#[test]
fn a_client_that_is_slow_with_a_head_by_http2_has_the_time_without_a_request() {
    simulated(|| async {
        let limits = Limits::new().idle_time(seconds(20)).probe_time(Duration::MAX);
        beside(serve(listener().await?, path).limits(limits).report(|_| ()), async {
            let mut client = Client::connect().await?;
            client.stream.write_all(HELLO).await?;
            // Half of a head that has 32 bytes.
            client.stream.write_all(b"\0\0\x20\x01\x05\0\0\0\x01\x82\x86").await?;
            let begun = now();
            client.rest_of_bytes().await;
            // It does not answer the end of the connection either, for which it has five seconds.
            assert_eq!(now() - begun, seconds(25));
            Ok(())
        })
        .await
    });
}
