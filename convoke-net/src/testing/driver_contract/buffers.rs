//! Buffers of length zero, of excessive length, and several at once.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;

use convoke_task::try_join;

use super::DriverHarness;
use convoke_io::current_driver;

pub(super) fn empty_buffers_are_done_at_once(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        assert_eq!(near.read(&mut []).await?, 0, "an empty buffer is filled at once");
        assert_eq!(near.write(&[]).await?, 0);
        assert_eq!(near.read_owned([]).await.0?, 0);
        assert_eq!(near.write_owned([]).await.0?, 0);
        assert_eq!(near.read_vectored(&mut []).await?, 0);
        assert_eq!(near.write_vectored(&[IoSlice::new(&[])]).await?, 0);
        assert_eq!(current_driver()?.in_flight(), 0);
        far.write_all(b"!").await?;
        assert_eq!(near.read(&mut [0; 2]).await?, 1, "the zero above was not the end of the stream");
        Ok(())
    });
}

pub(super) fn a_buffer_larger_than_the_bytes(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        let mut buffer = vec![0; 1 << 20];
        for round in 0..10_u8 {
            near.write_all(&[round; 5]).await?;
            let mut read = 0;
            while read < 5 {
                read += far.read(&mut buffer[read..]).await?;
            }
            assert_eq!(buffer[..5], [round; 5]);
            assert_eq!(read, 5);
        }
        Ok(())
    });
}

pub(super) fn a_buffer_smaller_than_the_bytes(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        near.write_all(b"0123456789").await?;
        let mut received = Vec::new();
        let mut buffer = [0; 3];
        while received.len() < 10 {
            let read = far.read(&mut buffer).await?;
            received.extend_from_slice(&buffer[..read]);
        }
        assert_eq!(received, b"0123456789");
        Ok(())
    });
}

pub(super) fn more_bytes_than_the_kernel_buffers(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        let data: Vec<u8> = (0..4_u32 << 20).map(|n| (n >> 12) as u8 ^ n as u8).collect();
        let mut received = vec![0; data.len()];
        try_join((near.write_all(&data), far.read_exact(&mut received))).await?;
        assert!(data == received);
        // With buffers that are moved to the driver.
        let write = async {
            let mut left = data.clone();
            while !left.is_empty() {
                let (written, data) = near.write_owned(left).await;
                left = data;
                left.drain(..written?);
            }
            io::Result::Ok(())
        };
        let read = async {
            let (mut received, mut buffer) = (Vec::new(), vec![0; 1 << 20]);
            while received.len() < data.len() {
                let (read, bytes) = far.read_owned(buffer).await;
                received.extend_from_slice(&bytes[..read?]);
                buffer = bytes;
            }
            io::Result::Ok(received)
        };
        let ((), received) = try_join((write, read)).await?;
        assert!(data == received);
        Ok(())
    });
}

pub(super) fn several_buffers_at_once(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        let data = [IoSlice::new(b"one"), IoSlice::new(b""), IoSlice::new(b"three")];
        let written = near.write_vectored(&data).await?;
        assert!(written > 0, "at least one byte is written");
        near.write_all(&b"onethree"[written..]).await?;
        while far.peek(&mut [0; 8]).await? < 8 {}
        let (mut first, mut second, mut third) = ([0; 2], [0; 0], [0; 16]);
        let mut read = far
            .read_vectored(&mut [
                IoSliceMut::new(&mut first),
                IoSliceMut::new(&mut second),
                IoSliceMut::new(&mut third),
            ])
            .await?;
        assert!(read > 0, "at least one byte is read");
        while read < 8 {
            let rest = if read < 2 { &mut first[read..] } else { &mut third[read - 2..] };
            read += far.read(rest).await?;
        }
        assert_eq!((&first, &third[..6]), (b"on", &b"ethree"[..]));
        Ok(())
    });
}

/// More buffers than a kernel takes in one call: about 1000.
const BUFFERS: usize = if cfg!(miri) { 30 } else { 3_000 };

pub(super) fn more_buffers_than_a_kernel_takes(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        let data: Vec<_> = (0..BUFFERS).map(|n| [n as u8, (n >> 8) as u8]).collect();
        let flat = data.concat();
        let slices: Vec<_> = data.iter().map(|word| IoSlice::new(word)).collect();
        let written = near.write_vectored(&slices).await?;
        assert!(0 < written && written <= flat.len());
        let mut received = vec![[0; 2]; BUFFERS];
        let mut buffers: Vec<_> = received.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
        let read = far.read_vectored(&mut buffers).await?;
        assert!(0 < read && read <= written);
        assert_eq!(received.concat()[..read], flat[..read]);
        // The short transfers say nothing about the connection, which still accepts and has bytes.
        near.write_all(&flat[written..]).await?;
        let mut rest = vec![0; flat.len() - read];
        far.read_exact(&mut rest).await?;
        assert_eq!(rest, flat[read..]);
        Ok(())
    });
}

pub(super) fn a_peek_consumes_nothing(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        near.write_all(b"seen").await?;
        let (mut seen, mut buffer) = (0, [0; 8]);
        while seen < 4 {
            seen = far.peek(&mut buffer).await?;
        }
        assert_eq!(far.peek(&mut buffer[..2]).await?, 2);
        assert_eq!(far.peek(&mut buffer).await?, 4);
        assert_eq!(far.read(&mut buffer).await?, 4);
        assert_eq!(&buffer[..4], b"seen");
        Ok(())
    });
}

pub(super) fn spare_capacity_is_filled(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        let sent: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
        let sends = async {
            near.write_all(&sent).await?;
            near.shutdown(Shutdown::Write)
        };
        let receives = async {
            let mut received = b"before".to_vec();
            received.reserve_exact(10);
            let capacity = received.capacity();
            let first = far.read_buf(&mut received).await?;
            assert!(
                0 < first && first <= 10 && received.capacity() == capacity,
                "it fits, and nothing moves"
            );
            while far.read_buf(&mut received).await? > 0 {}
            assert_eq!(far.read_buf(&mut received).await?, 0, "the end stays");
            Ok(received)
        };
        let ((), received) = try_join((sends, receives)).await?;
        assert!(received.starts_with(b"before") && received[6..] == sent);
        Ok(())
    });
}
