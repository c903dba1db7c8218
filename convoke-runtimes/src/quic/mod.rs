//! QUIC by [quinn], unchanged: endpoints over Convoke's sockets and timers.
//!
//! [`Quic::run`] runs a body, and [`Quic::server`] and [`Quic::client`] make quinn's [`Endpoint`]s in it. Connections and streams are used
//! as quinn's documentation says. Their tasks run on the executor of `run`.
//!
//! On Linux, and where else quinn-udp knows how, a socket sends and receives several datagrams in one system call (GSO, GRO), with
//! ECN, and does not fragment. Drivers without descriptors send one at a time: so QUIC runs in the simulator, too. There, the
//! same seed gives the same run if quinn's choices do: `EndpointConfig::rng_seed`, and keys whose signatures have one length (Ed25519).
//!
//! ```
//! use std::sync::Arc;
//! use convoke::prelude::*;
//! use convoke_runtimes::quic::{Quic, quinn};
//!
//! /// Asks a server one question.
//! async fn ask(
//!     roots: rustls::RootCertStore,
//!     question: &[u8],
//! ) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
//!     let config = quinn::ClientConfig::with_root_certificates(Arc::new(roots))?;
//!     Quic::run(async |quic| {
//!         let endpoint = quic.client("0.0.0.0:0").await?;
//!         let server = convoke::net::resolve("example.org:4433").await?[0];
//!         let connection = endpoint.connect_with(config, server, "example.org")?.await?;
//!         let (mut send, mut receive) = connection.open_bi().await?;
//!         send.write_all(question).await?;
//!         send.finish()?;
//!         Ok(receive.read_to_end(1 << 20).await?)
//!         // All handles are dropped, and the server is told: then `run` returns.
//!     })
//!     .await
//! }
//! ```
//!
//! quinn's futures are those of another crate: a stop drops them where they wait. Dropping the last handle of a connection closes it.

mod runtime;
mod socket;
mod timer;

pub use ::quinn;

use core::fmt;
use core::future::Future;
use std::io;
use std::sync::Arc;

use ::quinn::{Endpoint, EndpointConfig, Runtime, ServerConfig};
use convoke_core::BodyOutput;
use convoke_io::context::current_driver;
use convoke_io::driver::{Address, ListenOptions};
use convoke_net::net::{ToAddress, resolve};

use crate::background::{Background, run_with_background};
use runtime::OnConvoke;
use socket::Socket;

/// Makes QUIC endpoints, whose tasks live in the scope of [`Quic::run`]. Clones share it.
#[derive(Clone)]
pub struct Quic {
    background: Arc<Background>,
}

impl Quic {
    /// Runs a body with QUIC. When it has ended, its connections say so to their peers, within
    /// [`CLOSE_TIME`](crate::CLOSE_TIME).
    ///
    /// A connection ends when its last handle is dropped, and an endpoint when its last handle and its connections are gone. What is kept outside
    /// the body is cut at the end of that time, and then fails; peers find out by their own limits.
    ///
    /// - *Completes with* what the body returns, when all tasks of quinn have ended. Stopped, if the body is.
    /// - *If dropped*, the body is dropped; tasks of quinn end with the task.
    /// - *Runs on* the task. Tasks of quinn are children on its executor.
    /// - *Panics* with the panic of the body; and outside a task.
    ///
    /// ```
    /// use std::io;
    /// use convoke_runtimes::quic::{Quic, quinn};
    ///
    /// #[convoke::main]
    /// async fn main() -> io::Result<()> {
    ///     Quic::run(async |quic| {
    ///         let endpoint: quinn::Endpoint = quic.client("127.0.0.1:0").await?;
    ///         assert_eq!(endpoint.open_connections(), 0);
    ///         Ok(())
    ///     })
    ///     .await
    /// }
    /// ```
    pub async fn run<B, F>(body: B) -> F::Output
    where
        B: FnOnce(Self) -> F,
        F: Future<Output: BodyOutput>,
    {
        run_with_background("quinn", |background| body(Self { background })).await
    }

    /// Makes an endpoint that accepts connections, and can open them.
    ///
    /// - *Completes with* the endpoint; with an error if the address cannot be bound; or stopped.
    /// - *If dropped*, nothing is bound.
    /// - *Runs on* the current task. The socket belongs to the task's context.
    ///
    /// ```
    /// use std::io;
    /// use convoke_runtimes::quic::{Quic, quinn};
    ///
    /// async fn serve(quic: &Quic, config: quinn::ServerConfig) -> io::Result<()> {
    ///     let endpoint = quic.server(config, "0.0.0.0:4433").await?;
    ///     while let Some(incoming) = endpoint.accept().await {
    ///         println!("{} knocks", incoming.remote_address());
    ///         incoming.refuse();
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub async fn server(&self, config: ServerConfig, address: impl ToAddress) -> io::Result<Endpoint> {
        self.bind(EndpointConfig::default(), Some(config), address).await
    }

    /// Makes an endpoint that only opens connections, from this local address: port 0 selects a free one. Otherwise like
    /// [`server`](Quic::server).
    pub async fn client(&self, address: impl ToAddress) -> io::Result<Endpoint> {
        self.bind(EndpointConfig::default(), None, address).await
    }

    /// Makes an endpoint with a configuration of its own. Otherwise like [`server`](Quic::server).
    pub async fn bind(
        &self,
        config: EndpointConfig,
        server: Option<ServerConfig>,
        address: impl ToAddress,
    ) -> io::Result<Endpoint> {
        let driver = current_driver()?;
        let options = ListenOptions::default().reuse_address(false);
        let mut failed = None;
        for address in resolve(address).await? {
            match driver.datagrams(&Address::Internet(address), &options) {
                Ok(source) => {
                    let socket = Arc::new(Socket::new(source)?);
                    return Endpoint::new_with_abstract_socket(config, server, socket, self.runtime());
                }
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into()))
    }

    /// Returns the runtime, for `quinn::Endpoint::new` and for crates over quinn. Endpoints of it must be made in a task with an
    /// I/O context.
    pub fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::new(OnConvoke { background: self.background.clone() })
    }
}

impl fmt::Debug for Quic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quic").finish_non_exhaustive()
    }
}
