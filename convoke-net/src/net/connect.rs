//! How a stream is connected: options that are set before, and several addresses of a name tried at once
//! ("happy eyeballs", RFC 8305).
//!
//! The addresses are sorted so that the families alternate. The first attempt gets a head start; each further
//! one starts when the head start of the last one is over, or when an attempt has failed. The first
//! connection wins. The other attempts are children of a scope: they are stopped, and awaited.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use convoke_io::driver::{Address, Driver, SocketOption, Source};
use convoke_io::transfer::{Toward, Transfer};
use convoke_sync::mpsc;
use convoke_task::{local_scope, timeout};

use super::address_error::{all_failed, connect_error, no_answer};

/// The default time after which the next address of a name is tried, while the last attempt goes on. RFC 8305
/// calls it the connection attempt delay.
pub const CONNECT_HEAD_START: Duration = Duration::from_millis(250);

/// The default limit of the time that connecting to one address takes. Kernels try for about two minutes.
pub const CONNECT_LIMIT: Duration = Duration::from_secs(30);

/// Options to connect a TCP stream: for [`TcpStream::connect_with`](super::TcpStream::connect_with).
///
/// ```
/// use std::time::Duration;
/// use convoke::net::{ConnectOptions, SocketOption, TcpListener, TcpStream};
///
/// let context = convoke::driver::io_context()?;
/// let connected = context.block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let options = ConnectOptions::new()
///         .bind(([127, 0, 0, 1], 0))
///         .option(SocketOption::NoDelay(true))
///         .limit(Duration::from_secs(3));
///     TcpStream::connect_with(listener.local_addr()?, options).await
/// });
/// assert!(connected.unwrap()?.nodelay()?);
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectOptions {
    bind: Option<SocketAddr>,
    options: Vec<SocketOption>,
    head_start: Duration,
    limit: Duration,
}

impl ConnectOptions {
    /// Creates the default options: any local address, a head start of [`CONNECT_HEAD_START`], and a limit of
    /// [`CONNECT_LIMIT`] for each address.
    pub const fn new() -> Self {
        Self { bind: None, options: Vec::new(), head_start: CONNECT_HEAD_START, limit: CONNECT_LIMIT }
    }

    /// Binds the stream to this local address before it connects. Port 0 selects a free port. Only addresses
    /// of the same family are tried.
    #[must_use]
    pub fn bind(mut self, local: impl Into<SocketAddr>) -> Self {
        self.bind = Some(local.into());
        self
    }

    /// Sets this option of the socket before it is bound and connects, for example the size of its buffers.
    #[must_use]
    pub fn option(mut self, option: SocketOption) -> Self {
        self.options.push(option);
        self
    }

    /// Sets the time after which the next address of a name is tried while the last attempt goes on.
    /// `Duration::MAX` tries one address after the other.
    #[must_use]
    pub const fn head_start(mut self, head_start: Duration) -> Self {
        self.head_start = head_start;
        self
    }

    /// Sets the limit of the time that connecting to one address takes. `Duration::MAX` leaves it to the
    /// kernel.
    #[must_use]
    pub const fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Connects a stream to one of these addresses.
pub(super) async fn connect(
    driver: Arc<dyn Driver>,
    addresses: Vec<SocketAddr>,
    options: ConnectOptions,
) -> io::Result<Arc<dyn Source>> {
    let mut addresses = interleave(addresses);
    if let Some(local) = options.bind {
        addresses.retain(|address| address.is_ipv6() == local.is_ipv6());
    }
    match *addresses.make_contiguous() {
        [] => Err(io::Error::new(
            io::ErrorKind::AddrNotAvailable,
            "no address has the family of the local address that was given to `ConnectOptions::bind`",
        )),
        [only] => attempt(&*driver, only, &options).await.map_err(|failed| failed.of_only(only)),
        _ => connect_first(&*driver, addresses, &options).await,
    }
}

/// Tries several addresses with head starts. The first connection wins.
async fn connect_first(
    driver: &dyn Driver,
    mut addresses: VecDeque<SocketAddr>,
    options: &ConnectOptions,
) -> io::Result<Arc<dyn Source>> {
    let (results, mut ended) = mpsc::channel(addresses.len());
    local_scope(async move |s| {
        // Dropping a handle stops its attempt, and the scope waits for all of them.
        let mut attempts = Vec::with_capacity(addresses.len());
        let mut errors = Vec::new();
        loop {
            let next = addresses.pop_front();
            let is_last = next.is_none();
            if let Some(address) = next {
                let results = results.clone();
                attempts.push(s.named(format!("connect to {address}")).spawn_future(async move {
                    let result = attempt(driver, address, options).await;
                    // There is a slot for each address.
                    _ = results.try_send((address, result));
                }));
            }
            let head_start = if is_last || addresses.is_empty() { Duration::MAX } else { options.head_start };
            match timeout(head_start, ended.recv()).await {
                Ok(Some((_, Ok(source)))) => return Ok(source),
                Ok(Some((address, Err(failed)))) => errors.push((address, failed.into_error())),
                // The head start is over. (This scope has a sender, so the channel is open.)
                Ok(None) | Err(_) => continue,
            }
            if errors.len() == attempts.len() && addresses.is_empty() {
                return Err(all_failed(errors));
            }
        }
    })
    .await
}

/// The failure of an attempt.
enum Failed {
    /// With the error of the driver.
    With(io::Error),
    /// After this time without an answer.
    After(Duration),
}

impl Failed {
    #[cold]
    fn into_error(self) -> io::Error {
        match self {
            Self::With(error) => error,
            Self::After(limit) => {
                io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {limit:?}"))
            }
        }
    }

    /// Returns the error of connecting to a single address.
    #[cold]
    fn of_only(self, address: SocketAddr) -> io::Error {
        match self {
            Self::With(error) => connect_error(&address.into(), error),
            after @ Self::After(_) => no_answer(address, after.into_error()),
        }
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::With(error)
    }
}

/// Connects a stream to this address. A failure to create the socket is an error of this address only: the
/// next one may be of another family.
async fn attempt(
    driver: &dyn Driver,
    to: SocketAddr,
    options: &ConnectOptions,
) -> Result<Arc<dyn Source>, Failed> {
    let to = Address::Internet(to);
    let source = driver.stream(&to)?;
    for option in &options.options {
        source.set_option(*option)?;
    }
    if let Some(local) = options.bind {
        source.bind(&Address::Internet(local))?;
    }
    let connected = timeout(options.limit, Transfer::<_, Toward>::new(source.clone(), to)).await;
    let (connected, _) = connected.map_err(|_| Failed::After(options.limit))?;
    connected?;
    Ok(source)
}

/// Sorts addresses so that the families alternate, beginning with that of the first. Inside a family the
/// order stays.
pub fn interleave(addresses: Vec<SocketAddr>) -> VecDeque<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let count = addresses.len();
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut sorted = VecDeque::with_capacity(count);
    while sorted.len() < count {
        sorted.extend(first.next());
        sorted.extend(second.next());
    }
    sorted
}
