//! Several tasks read from one stream, on two contexts and a pool, by calls that are stopped and dropped at
//! any time. One byte is in transit at a time, and the next is sent when it was read: so a reader that is not
//! woken for its byte, or for the end, is noticed.
//!
//! `CONVOKE_ROUNDS=n` sets the number of rounds. `CONVOKE_SEED=n` runs only that round, `CONVOKE_ROUNDS`
//! times.
#![cfg(all(feature = "net", unix))]

use std::io::{self, IoSliceMut};
use std::net::Shutdown;
use std::sync::Arc;

use convoke::executor::ExecutorRef;
use convoke::net::{Kind, SocketStream, TcpListener, TcpStream, UnixStream};
use convoke::prelude::*;
use convoke::raw::Random;
use convoke::runtime::Runtime;
use convoke::sync::mpsc::{Sender, channel};

use crate::random_rounds::{Rounds, numbered, polled_once, stopped_soon};

const ROUNDS: u64 = 200;
const BYTES: usize = 30;
const READERS: usize = 4;
/// The maximum number of checkpoints before a call is stopped.
const PATIENCE: usize = 5;

/// Reads with one call. Returns `None` if it was stopped or dropped.
async fn read_some<K: Kind>(
    stream: &SocketStream<K>,
    room: &mut [u8],
    random: &mut Random,
) -> io::Result<Option<usize>> {
    let mut owned = |bytes: Vec<u8>| room[..bytes.len()].copy_from_slice(&bytes);
    match random.below(6) {
        0 => {
            let (read, bytes) = stream.read_owned(vec![0; BUFFER]).await;
            owned(bytes);
            read.map(Some)
        }
        1 => {
            let read = stream.read_owned(vec![0; BUFFER]).into_future();
            let Some((read, bytes)) = stopped_soon(read, random.below(PATIENCE)).await else {
                return Ok(None);
            };
            owned(bytes);
            read.map(Some)
        }
        2 => {
            let (one, other) = room.split_at_mut(1);
            stream.read_vectored(&mut [IoSliceMut::new(one), IoSliceMut::new(other)]).await.map(Some)
        }
        3 if random.one_in(2) => polled_once(stream.read(room)).await.transpose(),
        4 => {
            stream.readable().await?;
            polled_once(stream.read(room)).await.transpose()
        }
        _ => stream.read(room).await.map(Some),
    }
}

/// The buffer size: more bytes than are ever available, so each read is short.
const BUFFER: usize = 8;

/// Reads until the end, and reports what it has read.
async fn reads<K: Kind>(
    stream: Arc<SocketStream<K>>,
    heard: Sender<u8>,
    mut random: Random,
) -> io::Result<()> {
    let mut room = [0; BUFFER];
    loop {
        match read_some(&stream, &mut room, &mut random).await? {
            None => checkpoint().await,
            Some(0) => return Ok(()),
            Some(1) => heard.try_send(room[0]).expect("one is under way at a time"),
            Some(more) => panic!("{more} bytes, and one is under way at a time"),
        }
    }
}

async fn run_round<K: Kind>(
    (near, far): (SocketStream<K>, SocketStream<K>),
    places: &[ExecutorRef],
    mut random: Random,
) -> io::Result<()> {
    let far = Arc::new(far);
    let (says, mut hears) = channel(1);
    scope(async |s| {
        for _ in 0..1 + random.below(READERS) {
            let place = &places[random.below(places.len())];
            s.child().on(place).spawn(reads(far.clone(), says.clone(), random.split()));
        }
        for byte in numbered(0, BYTES) {
            for _ in 0..random.below(PATIENCE) {
                checkpoint().await;
            }
            near.write_all(&[byte]).await?;
            assert_eq!(hears.recv().await, Some(byte));
        }
        near.shutdown(Shutdown::Write)
    })
    .await
}

async fn connection() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (near, (far, _)) = try_join((TcpStream::connect(address), listener.accept())).await?;
    near.set_nodelay(true)?;
    Ok((near, far))
}

#[test]
fn each_byte_is_heard_by_one_and_the_end_by_all() {
    let runtime = Runtime::builder().contexts(2).pool_threads(2).build().unwrap();
    let mut places: Vec<_> = runtime.contexts().iter().cloned().map(ExecutorRef::new).collect();
    places.push(ExecutorRef::new(runtime.pool()));
    Rounds::of("random_readers", ROUNDS).run(|seed| {
        let random = Random::new(seed);
        let played = runtime.block_on(async {
            if seed % 2 == 0 {
                run_round(connection().await?, &places, random).await
            } else {
                run_round(UnixStream::pair()?, &places, random).await
            }
        });
        played.unwrap().expect("nobody hangs up");
    });
}
