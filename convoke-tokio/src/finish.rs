//! `finish`: asks the chains of a tokio runtime to stop, and waits for their clean-up.

use core::fmt;
use core::future::poll_fn;
use std::time::Duration;

use convoke_inspect::tree::{TaskNode, tree};
use tokio::runtime::Handle;

use crate::chains::{Finishing, Known};

/// Ends Convoke in this tokio runtime: asks every chain of [`run`](crate::run()),
/// [`run_local`](crate::run_local()) and [`join`](crate::join()) to stop ([`Shutdown`]), and waits until all
/// have ended. So the clean-up of handlers that tokio has dropped is awaited, too. Call it last, before the
/// runtime is dropped: what tokio drops after that is cut short.
///
/// Chains that start while it waits are asked to stop, too. After it has returned, new ones run as before.
///
/// - *Completes with* `Ok` when no chain is left; with [`Unfinished`], which names those that are left and where
///   they wait, when `grace` is over. They go on.
/// - *If dropped*, the chains end without being waited for.
/// - *Runs on* the tokio task that awaits it. Not inside a chain: that would wait for itself.
/// - *Panics* outside a tokio runtime, and if its timers are not enabled.
///
/// [`Shutdown`]: convoke_core::StopReason::Shutdown
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() {
///     let handler = tokio::spawn(convoke_tokio::run(async {
///         let body = async { sleep(Duration::from_secs(3600)).await };
///         ensure(async |_| println!("cleaned up"), body).await;
///     }));
///     tokio::task::yield_now().await;
///     handler.abort(); // As tokio does when a client hangs up.
///     convoke_tokio::finish(Duration::from_secs(10)).await.unwrap();
/// }
/// ```
#[doc(alias = "shutdown")]
#[doc(alias = "drain")]
pub async fn finish(grace: Duration) -> Result<(), Unfinished> {
    let finishing = Finishing::begin(Handle::current().id());
    let ended = poll_fn(|cx| finishing.poll(cx));
    tokio::time::timeout(grace, ended).await.map_err(|_| Unfinished::new(&finishing.left()))
}

/// Error of [`finish()`]: chains that had not ended when the time was over. It prints each with its tasks and
/// where they wait.
#[derive(Clone, Debug)]
pub struct Unfinished {
    chains: Vec<String>,
}

impl Unfinished {
    fn new(left: &[Known]) -> Self {
        let tree = tree();
        let mut roots: Vec<TaskNode<'_>> = tree.roots().collect();
        let chains = left.iter().map(|known| describe(known, &mut roots)).collect();
        Self { chains }
    }

    /// Returns the chains, each as the tree of its tasks.
    pub fn chains(&self) -> impl ExactSizeIterator<Item = &str> {
        self.chains.iter().map(String::as_str)
    }
}

/// Returns the tree of the chain's tasks; or its name alone, if it is not among the roots any more.
fn describe(known: &Known, roots: &mut Vec<TaskNode<'_>>) -> String {
    let is_it = |root: &TaskNode<'_>| match &known.name {
        Some(name) => root.has_name(name),
        None => root.name().is_none() && root.location() == known.location && root.stop_asked(),
    };
    match roots.iter().position(is_it) {
        Some(index) => roots.swap_remove(index).to_string().trim_end().to_owned(),
        None => known.to_string(),
    }
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chains = self.chains.len();
        write!(f, "{chains} chain{} had not ended in time:", if chains == 1 { "" } else { "s" })?;
        self.chains.iter().try_for_each(|chain| write!(f, "\n{chain}"))
    }
}

impl core::error::Error for Unfinished {}
