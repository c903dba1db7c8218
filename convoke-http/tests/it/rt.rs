//! Hyper's traits on Convoke.

use std::future::poll_fn;
use std::pin::Pin;

use convoke::time::now;
use convoke_http::rt::{ConvokeTimer, FuturesStream, HyperIo};
use futures_io::{AsyncRead, AsyncWrite};
use hyper::rt::{Read, ReadBuf, Timer};

use crate::harness::{seconds, simulated};

#[test]
fn sleeps_are_by_virtual_time_and_can_be_moved() {
    simulated(|| async {
        let (timer, begun) = (ConvokeTimer, now());
        assert_eq!(timer.now(), begun);
        timer.sleep(seconds(3600)).await;
        assert_eq!(now() - begun, seconds(3600));
        let mut sleep = timer.sleep_until(begun + seconds(10_000));
        timer.reset(&mut sleep, begun + seconds(4000));
        sleep.as_mut().await;
        assert_eq!(now() - begun, seconds(4000));
        // It sleeps again.
        timer.reset(&mut sleep, begun + seconds(5000));
        sleep.await;
        assert_eq!(now() - begun, seconds(5000));
        Ok(())
    });
}

#[test]
fn bytes_pass_through_both_adapters_into_memory_that_is_not_initialised() {
    simulated(|| async {
        let (mut near, far) = convoke::io::duplex(64);
        let mut far = HyperIo::new(far);
        convoke::io::write_all(&mut near, b"hello world").await?;
        let mut memory = [std::mem::MaybeUninit::uninit(); 5];
        let mut target = ReadBuf::uninit(&mut memory);
        poll_fn(|cx| Pin::new(&mut far).poll_read(cx, target.unfilled())).await?;
        assert_eq!(target.filled(), b"hello");
        // A full target reads nothing.
        poll_fn(|cx| Pin::new(&mut far).poll_read(cx, target.unfilled())).await?;
        assert_eq!(target.filled(), b"hello");
        // And back to `futures-io`.
        let (mut both_ways, mut rest) = (FuturesStream::new(far), [0; 64]);
        let read = poll_fn(|cx| Pin::new(&mut both_ways).poll_read(cx, &mut rest)).await?;
        assert_eq!(&rest[..read], b" world");
        poll_fn(|cx| Pin::new(&mut both_ways).poll_write(cx, b"bye")).await?;
        poll_fn(|cx| Pin::new(&mut both_ways).poll_close(cx)).await?;
        let read = poll_fn(|cx| Pin::new(&mut near).poll_read(cx, &mut rest)).await?;
        assert_eq!(&rest[..read], b"bye");
        assert_eq!(poll_fn(|cx| Pin::new(&mut near).poll_read(cx, &mut rest)).await?, 0);
        Ok(())
    });
}

#[cfg(feature = "tower")]
#[test]
fn a_connector_of_tower_connects_to_the_host_of_a_uri() {
    use std::io;

    use bytes::Bytes;
    use convoke::prelude::*;
    use convoke_http::rt::{Connector, ScopeExecutor};
    use convoke_http::serve;
    use http::{Request, Uri};
    use http_body_util::{BodyExt, Full};
    use hyper::client::conn::http1;
    use hyper::rt::{Executor, Write};
    use tower::{Service, ServiceExt};

    use crate::harness::{beside, listener, path};

    /// Sends a request, as a client of hyper-util does: by any connector and any executor.
    async fn fetch<C, E>(connector: C, executor: E, uri: Uri) -> io::Result<Bytes>
    where
        C: Service<Uri, Response: Read + Write + Unpin + Send + 'static, Error: Into<io::Error>>,
        E: Executor<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>>,
    {
        let stream = connector.oneshot(uri.clone()).await.map_err(Into::into)?;
        let (mut sender, connection) = http1::handshake(stream).await.map_err(io::Error::other)?;
        executor.execute(Box::pin(async { _ = connection.await }));
        let request = Request::get(uri).header("host", "server").body(Full::<Bytes>::default()).unwrap();
        let answer = sender.send_request(request).await.map_err(io::Error::other)?;
        Ok(answer.into_body().collect().await.map_err(io::Error::other)?.to_bytes())
    }

    simulated(|| async {
        beside(serve(listener().await?, path), async {
            scope(async |s| {
                for uri in ["http://127.0.0.1/page", "https://127.0.0.1:80/page"] {
                    let executor = ScopeExecutor::new(s.clone());
                    let page = fetch(Connector::new(), executor, Uri::from_static(uri)).await?;
                    assert!(page.ends_with(b"/page"), "{page:?}");
                }
                let error = Connector::new().oneshot(Uri::from_static("/page")).await.unwrap_err();
                assert_eq!(error.to_string(), "`/page` has no host to connect to");
                let error = Connector::new().oneshot(Uri::from_static("http://127.0.0.1:81/")).await;
                assert_eq!(error.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
                io::Result::Ok(())
            })
            .await
        })
        .await
    });
}
