//! Random paths of one stream: from context to context, to a pool and back, out into the standard library and
//! back, in halves and whole, by calls of all kinds that are stopped and dropped at any time. A plain thread
//! echoes at the other end.
//!
//! What comes back is what was sent, once and in order. At the end no driver has an operation in flight.
//!
//! `CONVOKE_ROUNDS=n` sets the number of rounds. `CONVOKE_SEED=n` runs only that round, `CONVOKE_ROUNDS`
//! times.
#![cfg(all(feature = "net", unix))]

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem;
use std::net::Shutdown;
use std::os::unix::net as unix;
use std::sync::Arc;
use std::{net, thread};

use convoke::driver::Driver;
use convoke::driver::current_driver;
use convoke::executor::ExecutorRef;
use convoke::io as stream;
use convoke::io::Progress;
use convoke::net::{Internet, Kind, SocketStream, TcpStream, Unix, UnixStream};
use convoke::prelude::*;
use convoke::raw::Random;
use convoke::run_on;
use convoke::runtime::Runtime;

use crate::random_rounds::{Rounds, numbered, polled_once, stopped_soon};

const ROUNDS: u64 = 100;
const STEPS: usize = 60;
/// The maximum number of bytes in transit: less than the kernel buffers, so that the ends do not wait for
/// each other.
const IN_TRANSIT: u64 = 30_000;
/// The maximum length of one transfer.
const LONGEST: usize = 9_000;

/// A kind of stream that can leave its driver and come back.
trait Wanders: Kind + Sized {
    /// Opens a connection. One end belongs to the current context.
    fn pair() -> io::Result<(SocketStream<Self>, Box<dyn Echoes>)>;

    /// Moves a stream out of its driver, and into the driver of the current context.
    fn through_std(stream: SocketStream<Self>) -> io::Result<SocketStream<Self>>;
}

impl Wanders for Internet {
    fn pair() -> io::Result<(TcpStream, Box<dyn Echoes>)> {
        let listener = net::TcpListener::bind("127.0.0.1:0")?;
        let near = net::TcpStream::connect(listener.local_addr()?)?;
        let (far, _) = listener.accept()?;
        // Without this the kernel delays small pieces.
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        Ok((TcpStream::from_std(near)?, Box::new(far)))
    }

    fn through_std(stream: TcpStream) -> io::Result<TcpStream> {
        TcpStream::from_std(stream.into_std()?)
    }
}

impl Wanders for Unix {
    fn pair() -> io::Result<(UnixStream, Box<dyn Echoes>)> {
        let (near, far) = unix::UnixStream::pair()?;
        Ok((UnixStream::from_std(near)?, Box::new(far)))
    }

    fn through_std(stream: UnixStream) -> io::Result<UnixStream> {
        UnixStream::from_std(stream.into_std()?)
    }
}

/// The peer's end.
trait Echoes: Read + Write + Send {
    fn ends(&self) -> io::Result<()>;
}

impl Echoes for net::TcpStream {
    fn ends(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl Echoes for unix::UnixStream {
    fn ends(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

/// Splits a stream, uses both halves at the same time, and joins them again.
async fn in_halves<K: Kind>(
    stream: SocketStream<K>,
    way: &mut Way,
    random: &mut Random,
) -> io::Result<SocketStream<K>> {
    let (mut reads, mut writes) = stream.into_split();
    let words = way.words(random);
    let mut buffer = vec![0; way.in_transit() as usize];
    // Bytes that were in transit come back, too, so the reader ends.
    try_join((stream::write_all(&mut writes, &words), stream::read_exact(&mut reads, &mut buffer))).await?;
    way.said += words.len() as u64;
    way.has_heard(&buffer);
    Ok(reads.reunite(writes).expect("they are of one stream"))
}

async fn write_some<K: Kind>(
    stream: &SocketStream<K>,
    words: Vec<u8>,
    random: &mut Random,
) -> io::Result<usize> {
    let patience = random.below(4);
    match random.below(5) {
        0 => stream.write(&words).await,
        1 => stream.write_owned(words).await.0,
        2 => {
            let pieces: Vec<_> = words.chunks(1 + patience).map(IoSlice::new).collect();
            stream.write_vectored(&pieces).await
        }
        3 => polled_once(stream.write(&words)).await.unwrap_or(Ok(0)),
        _ => {
            let progress = Progress::new();
            match stopped_soon(stream.write_all(&words).progress(&progress), patience).await {
                Some(Err(error)) => Err(error),
                _ => Ok(progress.bytes() as usize),
            }
        }
    }
}

/// Reads into a buffer. Returns the length, unless the call was stopped or dropped.
async fn read_some<K: Kind>(
    stream: &SocketStream<K>,
    buffer: &mut Vec<u8>,
    random: &mut Random,
) -> io::Result<Option<usize>> {
    let patience = random.below(4);
    match random.below(6) {
        0 => stream.read(buffer).await.map(Some),
        1 => {
            let (read, bytes) = stream.read_owned(mem::take(buffer)).await;
            *buffer = bytes;
            read.map(Some)
        }
        2 => {
            let mut rooms: Vec<_> = buffer.chunks_mut(1 + patience).map(IoSliceMut::new).collect();
            stream.read_vectored(&mut rooms).await.map(Some)
        }
        3 => polled_once(stream.read(buffer)).await.transpose(),
        4 => {
            let owned = stream.read_owned(mem::take(buffer)).into_future();
            let Some((read, bytes)) = stopped_soon(owned, patience).await else { return Ok(None) };
            *buffer = bytes;
            read.map(Some)
        }
        _ => {
            stream.readable().await?;
            let lease = stream.read_lease().await?;
            buffer.clear();
            buffer.extend_from_slice(&lease);
            Ok(Some(lease.len()))
        }
    }
}

/// The numbers of bytes written and read.
#[derive(Default)]
struct Way {
    said: u64,
    heard: u64,
}

impl Way {
    fn in_transit(&self) -> u64 {
        self.said - self.heard
    }

    /// Returns the next bytes to write: none, if enough are in transit.
    fn words(&self, random: &mut Random) -> Vec<u8> {
        let most = (IN_TRANSIT - self.in_transit()).min(LONGEST as u64) as usize;
        numbered(self.said, if most == 0 { 0 } else { random.below(most) })
    }

    fn has_heard(&mut self, bytes: &[u8]) {
        assert!(bytes == numbered(self.heard, bytes.len()), "something else came back after {}", self.heard);
        self.heard += bytes.len() as u64;
    }
}

/// Takes one step of the path.
async fn step<K: Wanders>(
    stream: SocketStream<K>,
    way: &mut Way,
    random: &mut Random,
) -> io::Result<SocketStream<K>> {
    if random.one_in(8) {
        return K::through_std(stream);
    }
    match random.below(7) {
        0 => return in_halves(stream, way, random).await,
        1..=3 => {
            let words = way.words(random);
            if !words.is_empty() {
                way.said += write_some(&stream, words, random).await? as u64;
            }
        }
        _ if way.in_transit() > 0 => {
            let mut buffer = vec![0; 1 + random.below(LONGEST)];
            if let Some(read) = read_some(&stream, &mut buffer, random).await? {
                assert_ne!(read, 0, "it has not ended");
                way.has_heard(&buffer[..read]);
            }
        }
        _ => {}
    }
    Ok(stream)
}

async fn wander<K: Wanders>(places: Arc<[ExecutorRef]>, mut random: Random) -> io::Result<u64> {
    let (mut stream, peer) = run_on(&places[0], async { K::pair() }).await?;
    let echo = thread::spawn({
        let random = random.split();
        move || echo(peer, random)
    });
    let mut way = Way::default();
    for _ in 0..STEPS {
        let place = places[random.below(places.len())].clone();
        let (next, so_far, then) = run_on(&place, async move {
            let stream = step(stream, &mut way, &mut random).await?;
            io::Result::Ok((stream, way, random))
        })
        .await?;
        (stream, way, random) = (next, so_far, then);
    }
    stream.shutdown(Shutdown::Write)?;
    let mut rest = vec![0; way.in_transit() as usize + 1];
    let progress = Progress::new();
    let ended = stream::read_exact(&mut stream, &mut rest).progress(&progress).await;
    assert_eq!(ended.expect_err("there is no more").kind(), io::ErrorKind::UnexpectedEof);
    way.has_heard(&rest[..progress.bytes() as usize]);
    assert_eq!(way.in_transit(), 0, "all came back");
    assert_eq!(echo.join().expect("it has no reason to panic")?, way.said);
    Ok(way.said)
}

/// Echoes what it reads, in other pieces. Returns the number of bytes.
fn echo(mut peer: Box<dyn Echoes>, mut random: Random) -> io::Result<u64> {
    let (mut buffer, mut echoed) = (vec![0; LONGEST], 0);
    loop {
        let most = 1 + random.below(LONGEST);
        let heard = match peer.read(&mut buffer[..most])? {
            0 => break,
            heard => heard,
        };
        for piece in buffer[..heard].chunks(1 + random.below(LONGEST)) {
            peer.write_all(piece)?;
        }
        echoed += heard as u64;
    }
    peer.ends()?;
    Ok(echoed)
}

#[test]
fn what_comes_back_is_what_was_sent_wherever_the_stream_goes() {
    let runtime = Runtime::builder().contexts(2).pool_threads(1).build().unwrap();
    let contexts = runtime.contexts().to_vec();
    let mut places: Vec<_> = contexts.iter().cloned().map(ExecutorRef::new).collect();
    places.push(ExecutorRef::new(runtime.pool()));
    let places: Arc<[ExecutorRef]> = places.into();
    let mut said = 0;
    let were_usual = Rounds::of("random_ways", ROUNDS).run(|seed| {
        let (random, places) = (Random::new(seed), places.clone());
        said += runtime
            .block_on(async move {
                if seed % 2 == 0 {
                    wander::<Internet>(places, random).await
                } else {
                    wander::<Unix>(places, random).await
                }
            })
            .unwrap()
            .expect("nobody hangs up");
    });
    let drivers: Vec<Arc<dyn Driver>> = runtime
        .block_on(async move {
            let mut drivers = Vec::new();
            for context in &contexts {
                drivers.push(run_on(context, async { current_driver().unwrap() }).await);
            }
            drivers
        })
        .unwrap();
    // Other threads may still be dropping what has ended.
    while drivers.iter().any(|driver| driver.in_flight() > 0) {
        thread::yield_now();
    }
    assert!(!were_usual || said > 0, "somebody has said something");
}
