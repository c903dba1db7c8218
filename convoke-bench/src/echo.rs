//! Echo servers and their load: the machinery of the socket scenarios.
//!
//! The program starts itself twice more, with hidden subcommands: as the server of one peer, on the first
//! core it may use, and as the load, on the second. The load is the same for all peers. The program itself
//! sleeps meanwhile; it talks to both over their standard input and output, one line each way, and they end
//! when it does.
//!
//! - [`servers`]: one file per peer, all with the same signature.
//! - [`serving`]: the server's process before it serves.
//! - [`load`]: the load generator; [`dialogue`] is what it says and what must come back; [`epoll`] is the wait of the load and of the hand-written server.
//! - [`linux`]: cores, limits, clocks: calls that the standard library does not offer.
//! - [`process`]: such a process, seen from the program that measures.
//! - [`pair`]: a server and its load as one contestant; also under callgrind.

mod dialogue;
mod epoll;
mod linux;
mod load;
mod pair;
mod process;
mod servers;
mod serving;

pub(crate) use dialogue::STREAMS;
pub(crate) use pair::{Idle, Pair, server_instructions};
pub(crate) use servers::{http_peers, http_peers_on_cores, peers, peers_on_cores};

use std::process::ExitCode;

use load::Load;
use serving::Serve;

/// The transport of the bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Transport {
    Tcp,
    Udp,
    /// TCP, and the server computes for each message before it sends it back.
    Work,
    /// HTTP/1.1: the message is a request, and the server answers `hello`.
    Http1,
    /// HTTP/2: the message is several requests at a time on one connection.
    Http2,
    /// HTTP/1.1, and the server computes for each request before it answers.
    HttpWork,
}

impl Transport {
    fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Work => "work",
            Self::Http1 => "http1",
            Self::Http2 => "http2",
            Self::HttpWork => "http_work",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::Tcp, Self::Udp, Self::Work, Self::Http1, Self::Http2, Self::HttpWork]
            .into_iter()
            .find(|transport| transport.name() == name)
    }

    /// Returns true if the server may have all cores, and the load has to find a place among them.
    fn is_on_cores(self) -> bool {
        matches!(self, Self::Work | Self::HttpWork)
    }
}

/// The work of a server: a number of connections, each of which sends a message, waits until all of it has
/// come back, and sends again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) transport: Transport,
    pub(crate) bytes: usize,
    pub(crate) connections: usize,
}

impl Shape {
    /// Returns the buffer size of a connection's task. It is twice the message: a read that does not fill it
    /// tells a runtime that there is nothing more, and some then save a system call.
    fn buffer(self) -> usize {
        2 * self.bytes
    }
}

/// The role of a process of the benchmark, for the one that measures.
#[derive(Debug, PartialEq)]
pub(crate) enum Role {
    Serve(Serve),
    Load(Load),
}

const SERVE: &str = "--echo-server";
const LOAD: &str = "--echo-load";

impl Role {
    /// Parses the command line of such a process, which only [`pair`] writes. Returns `None` for any other.
    pub(crate) fn asked_for(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let flag = arguments.next()?;
        let words: Vec<String> = arguments.collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match flag.as_str() {
            SERVE => Serve::parse(&words).map(Self::Serve),
            LOAD => Load::parse(&words).map(Self::Load),
            _ => None,
        }
    }

    pub(crate) fn run(self) -> ExitCode {
        let played = match self {
            Self::Serve(serve) => serve.run(),
            Self::Load(load) => load.run(),
        };
        match played {
            Ok(()) => ExitCode::SUCCESS,
            Err(problem) => {
                eprintln!("convoke-bench: {problem}");
                ExitCode::FAILURE
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(flag: &str, words: &[String]) -> Option<Role> {
        Role::asked_for(std::iter::once(flag.to_owned()).chain(words.iter().cloned()))
    }

    #[test]
    fn what_a_pair_writes_on_the_command_line_is_read_back() {
        let load = Load { transport: Transport::Tcp, port: 4711, connections: 50, bytes: 64 };
        assert_eq!(read(LOAD, &load.arguments()), Some(Role::Load(load)));
        for counting in [false, true] {
            let serve = Serve { peer: "tokio".to_owned(), transport: Transport::Udp, buffer: 128, counting };
            assert_eq!(read(SERVE, &serve.arguments()), Some(Role::Serve(serve)));
        }
    }

    #[test]
    fn other_command_lines_are_left_to_others() {
        for line in ["", "tcp_echo_64_1", "--list", "--echo-load tcp 1 2", "--echo-server tokio sctp 3"] {
            assert_eq!(Role::asked_for(line.split_whitespace().map(str::to_owned)), None, "{line}");
        }
    }
}
