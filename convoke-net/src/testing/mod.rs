//! Tools to test drivers (feature `testing`): the driver contract as a test suite.

pub mod driver_contract;
