//! Tools to test with (feature `testing`): test bodies in virtual time, stops at every point, contract suites, and what senders and
//! executors are tested by hand with.

#[cfg(all(feature = "net", not(feature = "loom")))]
pub use convoke_net::testing::*;
pub use convoke_testing::*;
