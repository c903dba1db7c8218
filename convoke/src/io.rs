//! Streams of bytes, over anything that implements the traits of `futures-io`: copying, reading, writing, erased types and pipes in
//! memory (feature `net`).

#[doc(inline)]
pub use convoke_net::stream::*;
