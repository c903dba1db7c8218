//! A lack of descriptors is an error. The test lowers the limit of its process, so it needs one of its own:
//! cargo-nextest runs each test in a process of its own, `cargo test` does not.
#![cfg(unix)]

use std::io;
use std::sync::Arc;

use convoke_net::testing::driver_contract::{DriverHarness, exhaustion};
use convoke_poll::PollDriver;

use crate::descriptors::set_descriptor_limit;

const DESCRIPTORS: usize = 100;

#[test]
fn a_lack_of_descriptors_is_a_temporary_error() {
    set_descriptor_limit(DESCRIPTORS as libc::rlim_t);
    for make in [PollDriver::new, PollDriver::portable, PollDriver::portable_without_edges] {
        let make: fn() -> io::Result<PollDriver> = make;
        let harness = DriverHarness::new(move || Arc::new(make().expect("a driver can be created")));
        exhaustion(&harness.descriptors_run_out(DESCRIPTORS));
    }
}
