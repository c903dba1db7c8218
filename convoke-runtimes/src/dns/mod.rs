//! DNS by [hickory-resolver](hickory_resolver), unchanged: its resolver over Convoke's sockets and timers.
//!
//! [`Dns`] is the runtime that its resolver asks for. Use it for what the system's resolver cannot tell: records other than
//! addresses, name servers of one's own, a cache. For the names of hosts, `convoke::net` asks the system.
//!
//! Over UDP and TCP. DNS over TLS, HTTPS and QUIC in hickory needs tokio: with those features, run it as a guest of `convoke-tokio`.

mod runtime;
mod tcp;
mod udp;

pub use hickory_resolver;

use core::fmt;
use core::future::Future;
use std::sync::Arc;

use convoke_core::BodyOutput;

use crate::background::{Background, run_with_background};
pub use runtime::Clock;
pub use tcp::DnsTcp;
pub use udp::DnsUdp;

/// The runtime of hickory's resolver, whose tasks live in the scope of [`Dns::run`]. Clones share it.
#[derive(Clone)]
pub struct Dns {
    background: Arc<Background>,
}

/// The resolver of hickory on Convoke.
pub type Resolver = hickory_resolver::Resolver<Dns>;

impl Dns {
    /// Runs a body with the runtime for resolvers. When it has ended, their tasks end, within [`CLOSE_TIME`](crate::CLOSE_TIME).
    ///
    /// - *Completes with* what the body returns, when all tasks of hickory have ended. Stopped, if the body is.
    /// - *If dropped*, the body is dropped; tasks of hickory end with the task.
    /// - *Runs on* the task. Tasks of hickory are children on its executor.
    /// - *Panics* with the panic of the body; and outside a task.
    ///
    /// ```no_run
    /// use convoke_runtimes::dns::{Dns, Resolver};
    /// use convoke_runtimes::dns::hickory_resolver::config::{ResolverConfig, CLOUDFLARE};
    ///
    /// #[convoke::main]
    /// async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    ///     Dns::run(async |dns| {
    ///         let config = ResolverConfig::udp_and_tcp(&CLOUDFLARE);
    ///         let resolver: Resolver = Resolver::builder_with_config(config, dns).build()?;
    ///         for mail_server in resolver.mx_lookup("example.org.").await?.answers() {
    ///             println!("{mail_server}");
    ///         }
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
        run_with_background("hickory", |background| body(Self { background })).await
    }
}

impl fmt::Debug for Dns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dns").finish_non_exhaustive()
    }
}
