//! All ways to read and to write, each with its promise about what has happened when it is stopped or dropped.

use std::io::{self, IoSlice, IoSliceMut};
use std::time::Duration;

use convoke::io::Progress;
use convoke::net::SocketOption;
use convoke::raw::Random;

use crate::random_rounds::{polled_once, stopped_soon};
use crate::random_sockets::ledger::{Listener, Speaker};

/// How much is said, or heard, at once: often more than the kernel has room for.
const LONGEST: usize = 20_000;
/// How long one of many buffers is, at the most: often there are more of them than the kernel takes at once.
const SHORTEST: usize = 24;
/// For how long a call is left alone before it is stopped.
const PATIENCE: usize = 6;
/// How often one speaks.
const PIECES: usize = 16;

/// Writes in pieces of any length until it has said enough.
pub(crate) async fn speak(speaker: Speaker, mut random: Random) {
    for _ in 0..random.below(PIECES) {
        match say_something(&speaker, &mut random).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return speaker.ledger.explains(error),
        }
    }
}

/// Whether one knows how much was said, and can go on.
async fn say_something(speaker: &Speaker, random: &mut Random) -> io::Result<bool> {
    let words = speaker.words(1 + random.below(LONGEST));
    let stream = &*speaker.stream;
    match random.below(8) {
        0 => speaker.wrote(stream.write(&words).await? as u64),
        1 => speaker.wrote(stream.write_owned(words).await.0? as u64),
        2 => say_all(speaker, &words).await?,
        3 => {
            // What is stopped has not happened, or says that it has: here, for if we are stopped too nobody hears it from us.
            let write = async {
                speaker.wrote(stream.write_owned(words).await.0? as u64);
                Ok(())
            };
            if let Some(Err(error)) = stopped_soon(write, random.below(PATIENCE)).await {
                return Err(error);
            }
        }
        4 => {
            if let Some(Err(error)) = stopped_soon(say_all(speaker, &words), random.below(PATIENCE)).await {
                return Err(error);
            }
        }
        5 => {
            if let Some(written) = polled_once(stream.write(&words)).await {
                speaker.wrote(written? as u64);
            }
        }
        6 => {
            let pieces: Vec<_> = words.chunks(1 + random.below(SHORTEST)).map(IoSlice::new).collect();
            speaker.wrote(stream.write_vectored(&pieces).await? as u64);
        }
        _ => {
            let most = words.len() as u64;
            match polled_once(stream.write_owned(words).into_future()).await {
                Some((written, _)) => speaker.wrote(written? as u64),
                // The one call that cannot say what has happened: so nothing is said after it.
                None => {
                    speaker.may_have_written(most);
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

/// Writes all of it, and counts what was written however it ends.
async fn say_all(speaker: &Speaker, words: &[u8]) -> io::Result<()> {
    struct Counts<'a>(&'a Speaker, Progress);

    impl Drop for Counts<'_> {
        fn drop(&mut self) {
            self.0.wrote(self.1.bytes());
        }
    }

    let counts = Counts(speaker, Progress::default());
    speaker.stream.write_all(words).progress(&counts.1).await
}

/// Reads in any way until the end, or until it has enough.
pub(crate) async fn listen(listener: Listener, mut random: Random, leaves: bool) {
    loop {
        if leaves && random.one_in(4) {
            if random.one_in(2) {
                _ = listener.stream.set_option(SocketOption::Linger(Some(Duration::ZERO)));
            }
            return;
        }
        match hear_something(&listener, &mut random, leaves).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return listener.ledger.explains(error),
        }
    }
}

/// Whether there is more to hear.
async fn hear_something(listener: &Listener, random: &mut Random, leaves: bool) -> io::Result<bool> {
    let stream = &*listener.stream;
    let mut room = vec![0; 1 + random.below(LONGEST)];
    let read = match random.below(10) {
        0 => Some(stream.read(&mut room).await?),
        1 => {
            let (read, bytes) = stream.read_owned(room).await;
            room = bytes;
            Some(read?)
        }
        2 => {
            let lease = stream.read_lease().await?;
            room.clear();
            room.extend_from_slice(&lease);
            Some(lease.len())
        }
        3 => {
            let (owned, patience) = (stream.read_owned(room).into_future(), random.below(PATIENCE));
            let Some((read, bytes)) = stopped_soon(owned, patience).await else { return Ok(true) };
            room = bytes;
            Some(read?)
        }
        4 => return hear_all(listener, room, random.below(PATIENCE)).await,
        5 => polled_once(stream.read(&mut room)).await.transpose()?,
        6 => {
            let piece = 1 + random.below(SHORTEST);
            let mut rooms: Vec<_> = room.chunks_mut(piece).map(IoSliceMut::new).collect();
            Some(stream.read_vectored(&mut rooms).await?)
        }
        7 => {
            stream.readable().await?;
            polled_once(stream.read(&mut room)).await.transpose()?
        }
        8 => {
            let seen = stream.peek(&mut room).await?;
            let mut read = vec![0; seen];
            assert!(stream.read(&mut read).await? == seen && room[..seen] == read, "it was seen there");
            Some(seen)
        }
        _ if leaves => {
            // What it may have read is lost, so nothing is heard after it.
            let Some((read, bytes)) = polled_once(stream.read_owned(room).into_future()).await else {
                return Ok(false);
            };
            room = bytes;
            Some(read?)
        }
        _ => None,
    };
    if read == Some(0) {
        listener.has_ended();
        return Ok(false);
    }
    listener.heard(&room[..read.unwrap_or(0)]);
    Ok(true)
}

/// Reads until the room is full or it is stopped; what it has read is in the room.
async fn hear_all(listener: &Listener, mut room: Vec<u8>, patience: usize) -> io::Result<bool> {
    let progress = Progress::default();
    let filled = stopped_soon(listener.stream.read_exact(&mut room).progress(&progress), patience).await;
    listener.heard(&room[..progress.bytes() as usize]);
    match filled {
        Some(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
            listener.has_ended();
            Ok(false)
        }
        Some(Err(error)) => Err(error),
        _ => Ok(true),
    }
}

/// Begins to connect and thinks better of it.
pub(crate) async fn connect_in_vain(address: std::net::SocketAddr) {
    drop(polled_once(convoke::net::TcpStream::connect(address)).await);
}
