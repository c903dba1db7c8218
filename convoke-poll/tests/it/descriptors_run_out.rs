//! No descriptor left: an error to who asks for one. In a process of its own, for the limit is that of the process; and one
//! test, for they would take each other's.
#![cfg(unix)]

use std::io;
use std::sync::Arc;

use convoke_net::testing::driver_contract::{Harness, exhaustion};
use convoke_poll::PollDriver;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const DESCRIPTORS: usize = 100;

#[test]
fn no_descriptor_left_is_an_error_and_then_it_goes_on() {
    let lowered = Rlimit { current: Some(DESCRIPTORS as u64), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, lowered).expect("a limit can be lowered");
    for make in [PollDriver::new, PollDriver::portable, PollDriver::portable_without_edges] {
        let make: fn() -> io::Result<PollDriver> = make;
        let harness = Harness::new(move || Arc::new(make().expect("a driver can be made")));
        exhaustion(&harness.descriptors_run_out(DESCRIPTORS));
    }
}
