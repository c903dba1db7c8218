//! Buffers of no length, of too much, and several at once.

use std::io::{self, IoSlice, IoSliceMut};

use convoke_task::try_join;

use super::Harness;
use convoke_io::current_driver;

pub(super) fn no_room_and_no_words_are_done_at_once(harness: &Harness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        assert_eq!(near.read(&mut []).await?, 0, "there is nothing to be read, and no room for it");
        assert_eq!(near.write(&[]).await?, 0);
        assert_eq!(near.read_owned([]).await.0?, 0);
        assert_eq!(near.write_owned([]).await.0?, 0);
        assert_eq!(near.read_vectored(&mut []).await?, 0);
        assert_eq!(near.write_vectored(&[IoSlice::new(&[])]).await?, 0);
        assert_eq!(current_driver()?.in_flight(), 0);
        far.write_all(b"!").await?;
        assert_eq!(near.read(&mut [0; 2]).await?, 1, "it was not the end");
        Ok(())
    });
}

pub(super) fn more_room_than_bytes(harness: &Harness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        let mut room = vec![0; 1 << 20];
        for round in 0..10_u8 {
            near.write_all(&[round; 5]).await?;
            let mut read = 0;
            while read < 5 {
                read += far.read(&mut room[read..]).await?;
            }
            assert_eq!(room[..5], [round; 5]);
            assert_eq!(read, 5);
        }
        Ok(())
    });
}

pub(super) fn more_bytes_than_room(harness: &Harness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        near.write_all(b"0123456789").await?;
        let mut heard = Vec::new();
        let mut room = [0; 3];
        while heard.len() < 10 {
            let read = far.read(&mut room).await?;
            heard.extend_from_slice(&room[..read]);
        }
        assert_eq!(heard, b"0123456789");
        Ok(())
    });
}

pub(super) fn more_bytes_than_the_kernel_takes(harness: &Harness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        let words: Vec<u8> = (0..4_u32 << 20).map(|n| (n >> 12) as u8 ^ n as u8).collect();
        let mut heard = vec![0; words.len()];
        try_join((near.write_all(&words), far.read_exact(&mut heard))).await?;
        assert!(words == heard);
        // With buffers that are given away.
        let write = async {
            let mut left = words.clone();
            while !left.is_empty() {
                let (written, words) = near.write_owned(left).await;
                left = words;
                left.drain(..written?);
            }
            io::Result::Ok(())
        };
        let read = async {
            let (mut heard, mut room) = (Vec::new(), vec![0; 1 << 20]);
            while heard.len() < words.len() {
                let (read, bytes) = far.read_owned(room).await;
                heard.extend_from_slice(&bytes[..read?]);
                room = bytes;
            }
            io::Result::Ok(heard)
        };
        let ((), heard) = try_join((write, read)).await?;
        assert!(words == heard);
        Ok(())
    });
}

pub(super) fn several_buffers_at_once(harness: &Harness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        let words = [IoSlice::new(b"one"), IoSlice::new(b""), IoSlice::new(b"three")];
        let written = near.write_vectored(&words).await?;
        assert!(written > 0, "some of it");
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
        assert!(read > 0, "some of it");
        while read < 8 {
            let place = if read < 2 { &mut first[read..] } else { &mut third[read - 2..] };
            read += far.read(place).await?;
        }
        assert_eq!((&first, &third[..6]), (b"on", &b"ethree"[..]));
        Ok(())
    });
}

/// Kernels take about a thousand in one call.
const BUFFERS: usize = if cfg!(miri) { 30 } else { 3_000 };

pub(super) fn more_buffers_than_a_kernel_takes(harness: &Harness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        let words: Vec<_> = (0..BUFFERS).map(|n| [n as u8, (n >> 8) as u8]).collect();
        let flat = words.concat();
        let slices: Vec<_> = words.iter().map(|word| IoSlice::new(word)).collect();
        let written = near.write_vectored(&slices).await?;
        assert!(0 < written && written <= flat.len());
        let mut heard = vec![[0; 2]; BUFFERS];
        let mut rooms: Vec<_> = heard.iter_mut().map(|room| IoSliceMut::new(room)).collect();
        let read = far.read_vectored(&mut rooms).await?;
        assert!(0 < read && read <= written);
        assert_eq!(heard.concat()[..read], flat[..read]);
        // That it took no more of them says nothing about the connection, which has room, and bytes.
        near.write_all(&flat[written..]).await?;
        let mut rest = vec![0; flat.len() - read];
        far.read_exact(&mut rest).await?;
        assert_eq!(rest, flat[read..]);
        Ok(())
    });
}

pub(super) fn a_peek_leaves_what_it_saw(harness: &Harness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        near.write_all(b"seen").await?;
        let (mut seen, mut room) = (0, [0; 8]);
        while seen < 4 {
            seen = far.peek(&mut room).await?;
        }
        assert_eq!(far.peek(&mut room[..2]).await?, 2);
        assert_eq!(far.peek(&mut room).await?, 4);
        assert_eq!(far.read(&mut room).await?, 4);
        assert_eq!(&room[..4], b"seen");
        Ok(())
    });
}
