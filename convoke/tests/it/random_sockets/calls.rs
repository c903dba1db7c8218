//! All ways to read and to write, and what each promises when it is stopped or dropped.

use std::io::{self, IoSlice, IoSliceMut};
use std::time::Duration;

use convoke::io::Progress;
use convoke::net::SocketOption;
use convoke::raw::Random;

use crate::random_rounds::{polled_once, stopped_soon};
use crate::random_sockets::ledger::{Listener, Speaker};

/// The maximum length of one transfer: often more than the kernel buffers.
const LONGEST: usize = 20_000;
/// The maximum length of one of many buffers: often there are more of them than the kernel takes in one call.
const SHORTEST: usize = 24;
/// The maximum number of checkpoints before a call is stopped.
const PATIENCE: usize = 6;
/// The maximum number of writes.
const PIECES: usize = 16;

/// Writes in pieces of random lengths.
pub(crate) async fn speak(speaker: Speaker, mut random: Random) {
    for _ in 0..random.below(PIECES) {
        match say_something(&speaker, &mut random).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return speaker.ledger.explains(error),
        }
    }
}

/// Writes something. Returns false if the written length is unknown, so that the stream cannot be used
/// further.
async fn say_something(speaker: &Speaker, random: &mut Random) -> io::Result<bool> {
    let words = speaker.words(1 + random.below(LONGEST));
    let stream = &*speaker.stream;
    match random.below(8) {
        0 => speaker.wrote(stream.write(&words).await? as u64),
        1 => speaker.wrote(stream.write_owned(words).await.0? as u64),
        2 => say_all(speaker, &words).await?,
        3 => {
            // A stopped write has not happened, or returns how much was written. It is recorded here, because
            // this task may be stopped, too.
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
                // Only this call cannot tell what has happened, so nothing is written after it.
                None => {
                    speaker.may_have_written(most);
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

/// Writes all bytes, and counts what was written however the call ends.
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

/// Reads in random ways until the end, or until it leaves.
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

/// Reads something. Returns false at the end.
async fn hear_something(listener: &Listener, random: &mut Random, leaves: bool) -> io::Result<bool> {
    let stream = &*listener.stream;
    let mut buffer = vec![0; 1 + random.below(LONGEST)];
    let read = match random.below(10) {
        0 => Some(stream.read(&mut buffer).await?),
        1 => {
            let (read, bytes) = stream.read_owned(buffer).await;
            buffer = bytes;
            Some(read?)
        }
        2 => {
            let lease = stream.read_lease().await?;
            buffer.clear();
            buffer.extend_from_slice(&lease);
            Some(lease.len())
        }
        3 => {
            let (owned, patience) = (stream.read_owned(buffer).into_future(), random.below(PATIENCE));
            let Some((read, bytes)) = stopped_soon(owned, patience).await else { return Ok(true) };
            buffer = bytes;
            Some(read?)
        }
        4 => return hear_all(listener, buffer, random.below(PATIENCE)).await,
        5 => polled_once(stream.read(&mut buffer)).await.transpose()?,
        6 => {
            let piece = 1 + random.below(SHORTEST);
            let mut rooms: Vec<_> = buffer.chunks_mut(piece).map(IoSliceMut::new).collect();
            Some(stream.read_vectored(&mut rooms).await?)
        }
        7 => {
            stream.readable().await?;
            polled_once(stream.read(&mut buffer)).await.transpose()?
        }
        8 => {
            let seen = stream.peek(&mut buffer).await?;
            let mut read = vec![0; seen];
            assert!(stream.read(&mut read).await? == seen && buffer[..seen] == read, "it was seen there");
            Some(seen)
        }
        _ if leaves => {
            // The bytes that it may have read are lost, so nothing is read after it.
            let Some((read, bytes)) = polled_once(stream.read_owned(buffer).into_future()).await else {
                return Ok(false);
            };
            buffer = bytes;
            Some(read?)
        }
        _ => None,
    };
    if read == Some(0) {
        listener.has_ended();
        return Ok(false);
    }
    listener.heard(&buffer[..read.unwrap_or(0)]);
    Ok(true)
}

/// Reads until the buffer is full or the call is stopped; what was read is in the buffer.
async fn hear_all(listener: &Listener, mut buffer: Vec<u8>, patience: usize) -> io::Result<bool> {
    let progress = Progress::default();
    let filled = stopped_soon(listener.stream.read_exact(&mut buffer).progress(&progress), patience).await;
    listener.heard(&buffer[..progress.bytes() as usize]);
    match filled {
        Some(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
            listener.has_ended();
            Ok(false)
        }
        Some(Err(error)) => Err(error),
        _ => Ok(true),
    }
}

/// Starts to connect and drops the attempt.
pub(crate) async fn connect_in_vain(address: std::net::SocketAddr) {
    drop(polled_once(convoke::net::TcpStream::connect(address)).await);
}
