//! Bytes in a row, over anything that implements the traits of `futures-io`: sockets, TLS, pipes in memory.
//!
//! Each call counts what it has done in a [`Progress`], if it is given one: so who was stopped in the middle, or failed,
//! knows how far it got.

mod any;
mod closing;
mod copy;
mod copy_bidirectional;
mod duplex;
mod progress;
mod read_exact;
mod write_all;

pub use any::{AnyReader, AnyStream, AnyWriter, Bytes};
pub use closing::Closing;
pub use convoke_io::driver::{LEASE_BYTES, LEASES_KEPT, Lease};
pub use copy::{COPY_BYTES, Copy, copy};
pub use copy_bidirectional::{CopyBidirectional, copy_bidirectional};
pub use duplex::{Duplex, duplex};
pub use progress::Progress;
pub use read_exact::{ReadExact, read_exact};
pub use write_all::{WriteAll, write_all};

pub(crate) mod raw {
    //! The errors of streams that ended in the middle.

    pub(crate) use super::read_exact::ended_early;
    pub(crate) use super::write_all::took_no_more;
}
