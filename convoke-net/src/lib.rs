//! Sockets, name lookup, signals and byte streams over any I/O driver. This crate makes no system calls on
//! sockets; drivers do.
//!
//! Everything here is built on `convoke-io`: sockets wrap a `Source` of the driver, and the resolver and the
//! signals are services of an I/O context. `stream` needs no context: it works on anything that implements
//! the traits of `futures-io`.
//!
//! | module | contents |
//! | --- | --- |
//! | [`net`] | TCP, UDP and Unix sockets; name lookup |
//! | [`signal`] | signals of the process or of a simulated host |
//! | [`stream`] | byte streams: reading, writing, copying, type erasure, pipes in memory |
//!
//! Programs use the facade crate `convoke`, which re-exports all of this.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod net;
pub mod signal;
pub mod stream;
// A suite over real sockets is no model, and takes longest to compile.
#[cfg(all(feature = "testing", not(feature = "loom")))]
pub mod testing;

pub mod raw {
    //! The parts that are tested on their own.

    #[doc(hidden)]
    pub use crate::net::address_error::{bind_error, connect_error};
    #[doc(hidden)]
    pub use crate::net::connect::interleave;
    #[doc(hidden)]
    pub use crate::net::resolver::lookup::{LookupRun, LookupWaiter, Lookups};
    #[doc(hidden)]
    pub use crate::net::server::acceptor::AcceptFailure;
}
