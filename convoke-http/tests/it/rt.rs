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
