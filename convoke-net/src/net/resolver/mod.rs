//! Name lookup: a service of each context. Numeric addresses do not come here. A driver with hosts of its
//! own, as in a simulation, is asked first.
//!
//! A task calls `look_up`, which asks the driver and then the [`Resolver`] of its context. The resolver
//! starts one lookup per name, as a task of its own on the context, and every task that wants this name waits
//! for it. That task asks the installed [`Names`].
//!
//! | module | contents |
//! | --- | --- |
//! | `names` | [`Names`], the origin of addresses: [`SystemNames`], [`BlockingNames`] |
//! | `table` | [`HostTable`], for tests and for private names |
//! | `service` | [`Resolver`], which shares lookups and limits how many run at once |
//! | `lookup` | a running lookup and its waiters |
//! | `error` | [`LookupError`]: the host that was not found, and why |

mod error;
pub(crate) mod lookup;
mod names;
mod service;
mod table;

pub use error::LookupError;
pub use names::{BlockingNames, LookUp, Names, SystemNames};
pub use service::{LOOKUPS, Resolver};
pub use table::HostTable;

use core::net::SocketAddr;
use std::io;
use std::sync::Arc;

use convoke_task::Context;
use convoke_task::context::ServiceError;

use convoke_io::context::{current_driver, use_service, with_services};
pub(super) use error::has_no_address;
use error::with_host;
use names::Installed;

/// Installs names in a context: its [`Resolver`] asks them instead of the system. Call it before the first
/// lookup.
///
/// In a simulation the simulated hosts are still found first; these names are asked for other hosts.
///
/// # Errors
/// Fails if there are names already, because others were installed or a name was looked up. Fails if the
/// context has ended.
///
/// ```
/// use convoke::net::resolver::{HostTable, install};
/// use convoke::net::{TcpListener, TcpStream};
/// use convoke::prelude::*;
///
/// let context = convoke::driver::io_context().unwrap();
/// let hosts = HostTable::new().with("database", [127, 0, 0, 1]);
/// install(context.services(), hosts).unwrap();
/// let outcome = context.block_on(async {
///     let listener = TcpListener::bind("database:0").await?;
///     let port = listener.local_addr()?.port();
///     let connect = TcpStream::connect(("database", port));
///     try_join((connect, listener.accept())).await.map(drop)
/// });
/// outcome.unwrap().unwrap();
/// ```
#[track_caller]
pub fn install(services: &Context, names: impl Names) -> Result<(), ServiceError> {
    services.make_service(|_| Installed(names)).map(drop)
}

/// Looks up a host; the ports of the result are 0. Asks the driver, then the context's resolver, or the
/// system if there is no context.
pub(super) async fn look_up(host: &str) -> io::Result<Vec<SocketAddr>> {
    if let Some(found) = look_up_by_driver(host) {
        return found;
    }
    match use_service::<Resolver>() {
        Ok(resolver) => resolver.look_up(host).await,
        Err(_) => SystemNames.look_up(host).await.map_err(|error| with_host(host, error)),
    }
}

/// Looks up a host name for the calling task alone. The port of the result is 0.
pub(super) async fn look_up_unshared(host: &str) -> io::Result<Vec<SocketAddr>> {
    if let Some(found) = look_up_by_driver(host) {
        return found;
    }
    let found = match installed_names() {
        Some(names) => names.look_up(host).await,
        None => SystemNames.look_up(host).await,
    };
    found.map_err(|error| with_host(host, error))
}

/// Asks the driver, which may have hosts of its own. Returns `None` if it has none, or if it does not know this one and
/// other names are installed.
fn look_up_by_driver(host: &str) -> Option<io::Result<Vec<SocketAddr>>> {
    let found = current_driver().ok()?.lookup(host)?;
    if is_unknown(&found) && installed_names().is_some() {
        return None;
    }
    let with_ports = |found: Vec<_>| found.into_iter().map(|ip| SocketAddr::new(ip, 0)).collect();
    Some(found.map(with_ports).map_err(|error| with_host(host, error)))
}

fn installed_names() -> Option<Arc<dyn Names>> {
    with_services(Context::find_service::<dyn Names>).ok().flatten()
}

fn is_unknown<T>(found: &io::Result<T>) -> bool {
    matches!(found, Err(error) if error.kind() == io::ErrorKind::NotFound)
}
