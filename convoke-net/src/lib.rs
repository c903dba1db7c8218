//! Sockets, names, signals and streams, over any driver. It makes no system calls of its own.
//!
//! | module | contents |
//! | --- | --- |
//! | [`net`] | TCP, UDP and Unix sockets; names |
//! | [`signal`] | signals, of the process or of a simulated host |
//! | [`stream`] | bytes in a row: reading, writing, copying, erased types, pipes in memory |
//!
//! Programs use the facade crate `convoke`, which re-exports all of this.

pub mod net;
pub mod signal;
pub mod stream;
#[cfg(feature = "testing")]
pub mod testing;

pub mod raw {
    //! The parts that are model-checked on their own.

    #[doc(hidden)]
    pub use crate::net::resolver::lookup::{LookupRun, LookupWaiter, Lookups};
}
