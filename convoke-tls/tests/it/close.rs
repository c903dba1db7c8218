//! close_notify on every exit, also if a stop comes at any await.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke::cleanup::Lent;
use convoke::io::{Duplex, duplex, write_all};
use convoke::prelude::*;
use convoke::testing::explore_stops;
use convoke_tls::{TlsAcceptor, TlsConnector, TlsStream};
use futures_io::AsyncWrite;

use crate::certificates::Authority;
use crate::exchange::{pair, read_to_end};

#[convoke::test(virtual_time)]
async fn every_exit_of_the_body_sends_close_notify() {
    for exit in ["return", "error", "panic", "stop"] {
        let (near, mut far) = pair(1 << 16).await;
        let body = async move |mut near: Lent<TlsStream<Duplex>>| -> io::Result<()> {
            write_all(&mut *near, b"last words").await?;
            match exit {
                "return" => Ok(()),
                "error" => Err(io::Error::other("the body failed")),
                "panic" => panic!("the body panicked"),
                _ => std::future::pending().await,
            }
        };
        let (ended, heard) = scope(async |s| {
            let child = s.child().spawn_future(async move { using(near, body).await });
            let stop = child.stop_handle();
            let (ended, heard) = join((child.outcome(), async {
                sleep(Duration::from_secs(1)).await;
                stop.request_stop(StopReason::Requested);
                read_to_end(&mut far).await
            }))
            .await;
            (ended, heard)
        })
        .await;
        assert_eq!(heard.unwrap(), b"last words", "{exit}");
        assert_eq!(matches!(ended, Outcome::Value(Ok(()))), exit == "return");
    }
}

#[convoke::test(virtual_time)]
async fn writing_after_the_close_is_an_error() {
    let (mut near, _far) = pair(1 << 16).await;
    std::future::poll_fn(|cx| std::pin::Pin::new(&mut near).poll_close(cx)).await.unwrap();
    let error = write_all(&mut near, b"too late").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

/// A client sends 3,000 bytes through a pipe of 50, so that its records wait half sent at most of its awaits. Wherever it is
/// stopped: what the peer reads is a beginning of the bytes, all that the client counted as written, and then close_notify.
#[test]
fn a_stop_at_every_await_still_ends_in_close_notify() {
    let authority = Authority::new();
    let acceptor = TlsAcceptor::new(authority.identity("a.test")).unwrap();
    let connector = TlsConnector::new(authority.roots()).unwrap();
    let ends = Arc::new(Mutex::new(Vec::new()));
    let exploration = explore_stops(|| {
        let (acceptor, connector, ends) = (acceptor.clone(), connector.clone(), ends.clone());
        async move {
            let (near, far) = duplex(50);
            let client = async move {
                let near = connector.connect("a.test", near).await?;
                using(near, async |mut near| {
                    for number in 0..30 {
                        write_all(&mut *near, &[number; 100]).await?;
                    }
                    io::Result::Ok(())
                })
                .await
            };
            scope(async |s| {
                // The peer goes on to the end of what it is sent.
                s.spawn(shield(async move {
                    let end = match acceptor.accept(far).await {
                        Ok(mut far) => Some(read_to_end(&mut far).await),
                        Err(_) => None,
                    };
                    ends.lock().unwrap().push(end);
                }));
                _ = client.await;
            })
            .await;
        }
    });
    let ends = ends.lock().unwrap();
    let connected: Vec<_> = ends.iter().flatten().collect();
    assert!(connected.len() > 20, "most stops come after the handshake: {}\n{exploration}", connected.len());
    for end in connected {
        let heard = end.as_ref().unwrap_or_else(|error| panic!("no close_notify: {error}"));
        assert!(heard.iter().enumerate().all(|(index, byte)| usize::from(*byte) == index / 100));
    }
}
