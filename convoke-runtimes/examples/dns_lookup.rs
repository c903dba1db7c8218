//! DNS by hickory: looks up names at a name server of this program, on loopback.
//!
//! ```text
//! cargo run --release -p convoke-runtimes --features hickory --example dns_lookup
//! ```

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use convoke::net::UdpSocket;
use convoke::prelude::*;
use convoke_runtimes::dns::hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use convoke_runtimes::dns::{Dns, Resolver};

type AnyError = Box<dyn std::error::Error + Send + Sync>;

const ANSWER: Ipv4Addr = Ipv4Addr::new(10, 1, 2, 3);

/// Length of the head of a message, and of what follows a question's name.
const HEAD: usize = 12;
const TYPE_AND_CLASS: usize = 4;

/// Answers every question for an address with the same one.
async fn name_server(socket: UdpSocket) -> io::Result<()> {
    let mut buffer = [0; 512];
    loop {
        let (length, from) = socket.recv_from(&mut buffer).await?;
        if let Some(answer) = answer(&buffer[..length]) {
            socket.send_to(&answer, from).await?;
        }
    }
}

/// Returns the answer to a message with one question.
fn answer(question: &[u8]) -> Option<Vec<u8>> {
    let name_ends = HEAD + question.get(HEAD..)?.iter().position(|byte| *byte == 0)? + 1;
    let mut answer = question.get(..name_ends + TYPE_AND_CLASS)?.to_vec();
    // It is a response, with recursion; one question, one answer, nothing else.
    answer[2] |= 0x80;
    answer[3] = 0x80;
    answer[4..HEAD].copy_from_slice(&[0, 1, 0, 1, 0, 0, 0, 0]);
    // The name of the question, type A, class IN, a minute, four bytes.
    answer.extend([0xc0, HEAD as u8, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
    answer.extend(ANSWER.octets());
    Some(answer)
}

fn resolver(dns: Dns, server: SocketAddr) -> Result<Resolver, AnyError> {
    let mut connection = ConnectionConfig::udp();
    connection.port = server.port();
    let server = NameServerConfig::new(server.ip(), true, vec![connection]);
    let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
    Ok(Resolver::builder_with_config(config, dns).build()?)
}

#[convoke::main]
async fn main() -> Result<(), AnyError> {
    let socket = UdpSocket::bind("127.0.0.1:0").await?;
    let server = socket.local_addr()?;
    scope(async |s| {
        let serves = s.named("name server").spawn_future(name_server(socket));
        Dns::run(async |dns| {
            let resolver = resolver(dns, server)?;
            for name in ["database.example.", "cache.example."] {
                let found: Vec<_> = resolver
                    .ipv4_lookup(name)
                    .await?
                    .answers()
                    .iter()
                    .map(|it| it.data.to_string())
                    .collect();
                println!("{name} {found:?}");
                assert_eq!(found, [ANSWER.to_string()]);
            }
            Ok::<_, AnyError>(())
        })
        .await?;
        serves.request_stop(StopReason::Named("no more questions"));
        Ok(())
    })
    .await
}
