//! TLS over any stream, by rustls. What a peer must receive is sent on every exit: the rest of a record, then
//! close_notify, then the end of the connection.
//!
//! A [`TlsAcceptor`] turns accepted connections into TLS streams, a [`TlsConnector`] those that were opened.
//! Both yield a [`TlsStream`], which reads and writes like the stream below it, and which
//! [`using`](convoke_task::using()) closes. [`Identity`] holds a certificate with its key, [`Roots`] the
//! authorities to trust.
//!
//! ```
//! use std::io;
//! use convoke::net::TcpStream;
//! use convoke::prelude::*;
//! use convoke::io::write_all;
//! use convoke_tls::TlsAcceptor;
//!
//! async fn greet(acceptor: &TlsAcceptor, client: TcpStream) -> io::Result<()> {
//!     let client = acceptor.accept(client).await?;
//!     using(client, async |mut client| {
//!         // However this ends, close_notify follows.
//!         write_all(&mut *client, b"hello\n").await
//!     })
//!     .await
//! }
//! ```
//!
//! # Certificates
//!
//! | task | call |
//! | --- | --- |
//! | trust what the operating system trusts | `Roots::system`, with the feature `system-roots` (`tls-system-roots` of `convoke`, `convoke-http`, `convoke-postgres`) |
//! | trust an authority of your own, or a self-signed certificate | [`Roots::add_pem`] |
//! | show a certificate | [`Identity::from_pem_files`], [`from_pem`](Identity::from_pem), [`from_der`](Identity::from_der) |
//! | replace it while the server runs | [`TlsAcceptor::reload`] |
//! | demand one of each client (mutual TLS) | [`AcceptorBuilder::require_clients_of`], [`ConnectorBuilder::identity`] |
//! | several, by the name that a client asks for | [`TlsAcceptor::from_config`], with a resolver of [`rustls`] |
//! | agree on a protocol (ALPN) | [`AcceptorBuilder::alpn`], [`ConnectorBuilder::alpn`], [`TlsStream::alpn`] |
//!
//! # Limits
//!
//! | limit | default |
//! | --- | --- |
//! | [time of a handshake](AcceptorBuilder::handshake_time), a silent client's too | 10 s |
//! | [handshakes in a turn](AcceptorBuilder::handshakes), between which other tasks run | 256 |
//! | [sessions that a server remembers](AcceptorBuilder::sessions) | 16,384 |
//! | memory of a stream that is idle | no buffers; what was received of a record that is not whole |
//!
//! # Modules
//!
//! | module | contents |
//! | --- | --- |
//! | `acceptor`, `connector` | the two ways to a TLS stream, with their limits |
//! | `handshake` | the handshake, and the turns in which its work is done |
//! | `stream`, `methods` | the TLS stream: reading, writing, closing |
//! | `split` | its two halves, for two tasks |
//! | `sessions` | what a server remembers for shorter handshakes |
//! | `session` | the TLS state of a connection, without I/O |
//! | `buffer` | leased buffers: an idle connection has none |
//! | `identity`, `roots` | certificates: one's own, and those to trust |
//! | `sni` | the name that a client asks for |
//! | `crypto`, `handshake_time` | what both ways share |
//! | `error` | failures of the protocol |

// The protocol between the parts, all of it in the polls of one stream:
//
// 1. `Session` holds the state of rustls and three buffers: `incoming` (received records), `plain` (decrypted
//    bytes that were not read yet), `outgoing` (records to send). It does no I/O, and knows no waker.
// 2. Records are sent in the order in which they were made, so everything goes through `outgoing`. A write
//    accepts plaintext only when `outgoing` is empty: at most one record of a write waits there.
// 3. `TlsStream` moves bytes between the session and the stream below. Every poll, of a read too, first tries
//    to send `outgoing`: a program that writes and then reads the answer needs no flush.
// 4. A poll that ends `Pending`, because the stream below waits or was stopped, leaves the session as it is. The
//    next write, flush or close goes on from there.
// 5. A buffer that is empty at the end of a poll goes back to the cache of the thread.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod acceptor;
mod buffer;
mod connector;
mod crypto;
mod error;
mod handshake;
mod handshake_time;
mod identity;
mod methods;
mod roots;
mod session;
mod sessions;
mod sni;
mod split;
mod stream;

pub use acceptor::{AcceptorBuilder, HANDSHAKES, SESSIONS, TlsAcceptor};
pub use connector::{ConnectorBuilder, TlsConnector};
pub use error::TlsError;
pub use handshake_time::HANDSHAKE_TIME;
pub use identity::Identity;
pub use roots::Roots;
pub use session::ProtocolVersion;
pub use split::{TlsReadHalf, TlsWriteHalf};
pub use stream::TlsStream;

/// The engine, for configurations that the builders do not offer.
pub use rustls;
