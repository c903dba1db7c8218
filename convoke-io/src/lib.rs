//! The third floor of Convoke: I/O. The contract of drivers, and all that is made of it: contexts, sockets, streams. It makes
//! no system calls of its own; drivers do, one floor up.
//!
//! | room | what is in it |
//! | --- | --- |
//! | [`driver`] | the contract: who takes an operation, and owns its buffers until it is done |
//! | [`context`] | one thread, one driver, one queue |
//! | [`net`] | sockets |
//! | [`signal`] | signals, of the process or of a simulated host |
//! | [`stream`] | bytes in a row: reading, writing, copying, erased types, pipes in memory |
//! | [`transfer`] | reading and writing with a buffer that is given away and comes back |
//!
//! Programs use the facade crate `convoke`, which re-exports all of this.

mod attempting;
pub mod context;
pub mod driver;
pub mod net;
pub mod signal;
mod steps;
pub mod stream;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transfer;

pub use attempting::{CALLS_IN_A_ROW, count_calls_anew};
pub use context::{IO, IoContext, IoExecutor, Work, current_driver};

pub mod raw {
    //! The low-level door: the parts that are model-checked on their own.

    #[doc(hidden)]
    pub use crate::net::resolver::flight::{Asker, Flights, Pilot};
}
