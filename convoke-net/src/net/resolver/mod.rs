//! How hosts are found by name: a service of each context. Numeric addresses do not come here, and a driver that knows hosts
//! by name, as a simulated one does, is asked first.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `names.rs` | where addresses come from: a trait, and the system |
//! | `table.rs` | a table of hosts, for tests and for names of one's own |
//! | `service.rs` | [`Resolver`]: one lookup for all who want the same name at the same time, and so many at a time |
//! | `flight.rs` | such a lookup, and those who wait for it |
//! | `error.rs` | [`LookupError`]: which host was not found, and why |

mod error;
pub(crate) mod lookup;
mod names;
mod service;
mod table;

pub use error::LookupError;
pub use names::{LookUp, Names, SystemNames};
pub use service::{LOOKUPS, Resolver};
pub use table::HostTable;

use core::net::SocketAddr;
use std::io;
use std::sync::Arc;

use convoke_task::Context;
use convoke_task::context::ServiceError;

use convoke_io::context::{current_driver, use_service, with_services};
pub(super) use error::has_no_address;
use error::naming;
use names::Installed;

/// Has the [`Resolver`] of a context ask these names, and not the system: before it is first asked for any.
///
/// In a simulation the hosts there are still found first; these names are asked for those that are not.
///
/// # Errors
/// If there are names already: others were installed, or one was looked up. And if the context has ended.
///
/// ```
/// use convoke::net::resolver::{HostTable, install};
/// use convoke::net::{TcpListener, TcpStream};
/// use convoke::prelude::*;
///
/// let context = convoke::driver::io_context().unwrap();
/// install(context.services(), HostTable::new().with("database", [127, 0, 0, 1])).unwrap();
/// let outcome = context.run_until(async {
///     let listener = TcpListener::bind("database:0").await?;
///     let port = listener.local_addr()?.port();
///     try_join((TcpStream::connect(("database", port)), listener.accept())).await.map(drop)
/// });
/// outcome.unwrap().unwrap();
/// ```
#[track_caller]
pub fn install(services: &Context, names: impl Names) -> Result<(), ServiceError> {
    services.make_service(|_| Installed(names)).map(drop)
}

/// The addresses of a host, without a port: by the driver, by the context's resolver, or, where there is no context, by the
/// system.
pub(super) async fn look_up(host: &str) -> io::Result<Vec<SocketAddr>> {
    let by_driver = current_driver().ok().and_then(|driver| driver.lookup(host));
    if let Some(found) = by_driver {
        let names = installed_names().filter(|_| is_unknown(&found));
        if names.is_none() {
            let found = found.map_err(|error| naming(host, error))?;
            return Ok(found.into_iter().map(|ip| SocketAddr::new(ip, 0)).collect());
        }
    }
    match use_service::<Resolver>() {
        Ok(resolver) => resolver.look_up(host).await,
        Err(_) => SystemNames.look_up(host).await.map_err(|error| naming(host, error)),
    }
}

fn installed_names() -> Option<Arc<dyn Names>> {
    with_services(Context::find_service::<dyn Names>).ok().flatten()
}

fn is_unknown<T>(found: &io::Result<T>) -> bool {
    matches!(found, Err(error) if error.kind() == io::ErrorKind::NotFound)
}
