//! Byte streams over anything that implements the traits of `futures-io`: sockets, TLS, pipes in memory.
//!
//! Each call can count its bytes in a [`Progress`], so that a caller knows how far it got before it was
//! stopped or failed.
//!
//! | module | contents |
//! | --- | --- |
//! | `read_exact`, `write_all` | one whole buffer |
//! | `copy`, `copy_bidirectional` | all bytes of one stream into another |
//! | `idle` | the limit of the time without progress |
//! | `any` | streams with an erased type |
//! | `lingering` | a close that delivers what was written |
//! | `closing` | a stream that `using` closes |
//! | `duplex` | a pipe in memory |
//! | `progress` | a counter of bytes |
//! | `step` | the budget and the stop of streams of other crates |

mod any;
mod closing;
mod copy;
mod copy_bidirectional;
mod duplex;
mod idle;
mod lingering;
mod progress;
mod read_exact;
pub(crate) mod step;
mod write_all;

pub use any::{
    AnyReadStream, AnyReadStreamMut, AnyReader, AnyStream, AnyStreamMut, AnyWriteStream, AnyWriteStreamMut,
    AnyWriter, Bytes,
};
pub use closing::Closing;
pub use convoke_io::driver::{LEASE_BYTES, LEASES_KEPT, Lease};
pub use copy::{COPY_BYTES, Copy, copy};
pub use copy_bidirectional::{CopyBidirectional, copy_bidirectional};
pub use duplex::{Duplex, duplex};
pub use lingering::{LINGER_BYTES, LINGER_IDLE, LINGER_TIME, Linger, lingering_close};
pub use progress::Progress;
pub use read_exact::{ReadExact, read_exact};
pub use write_all::{WriteAll, write_all};

pub(crate) mod raw {
    //! The errors of streams that end early, and the end of a lingering close.

    pub(crate) use super::lingering::discard;
    pub(crate) use super::read_exact::ended_early;
    pub(crate) use super::write_all::write_zero;
}
