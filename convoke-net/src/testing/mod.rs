//! Tools to test drivers with (feature `testing`): the contract, as a suite.

pub mod driver_contract;
