//! P4003R1 §6.2 and appendix B: a stream of which only the direction is known. The
//! function that reads it is compiled once, for sockets, TLS and tests.
//!
//! The paper keeps storage for an awaitable, and a table of functions to it. A Rust
//! stream is polled, so that a box is enough, and no read allocates.

use std::io;

use convoke::io::{AnyReadStream, duplex, write_all};
use convoke::prelude::*;

async fn count_lines(mut stream: AnyReadStream) -> io::Result<usize> {
    let (mut buffer, mut lines) = ([0; 16], 0);
    while let n @ 1.. = stream.read(&mut buffer).await? {
        lines += buffer[..n].iter().filter(|byte| **byte == b'\n').count();
    }
    Ok(lines)
}

pub(crate) fn run() -> String {
    let outcome = block_on(async {
        let text: &'static [u8] = b"one\ntwo\n";
        let of_memory = count_lines(AnyReadStream::new(text)).await?;
        let (near, mut far) = duplex(4);
        let write = async move { write_all(&mut far, b"one\ntwo\nthree\n").await };
        let read = count_lines(AnyReadStream::new(near));
        let (of_pipe, ()) = try_join((read, write)).await?;
        io::Result::Ok(format!("{of_memory} lines and {of_pipe} lines"))
    });
    outcome.unwrap().unwrap()
}
