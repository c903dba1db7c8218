//! The driver contract suite: one test for each theme, with several seeds, at the loopback address and at the
//! host's own.

use std::sync::Arc;

use convoke_net::testing::driver_contract;
use convoke_net::testing::driver_contract::{DriverHarness, THEMES, Theme};
use convoke_sim::SimDriver;

const SEEDS: u64 = if cfg!(miri) { 1 } else { 3 };
const DESCRIPTORS: usize = 100;

/// Checks one theme. The suite reads small messages in one call, as every real kernel allows, so short reads
/// are off.
fn check(theme: Theme) {
    for seed in 0..SEEDS {
        let harness = DriverHarness::new(move || Arc::new(SimDriver::alone(seed).short(0.0)));
        theme(&harness);
        theme(&harness.at([10, 0, 0, 1].into()));
    }
}

macro_rules! themes {
    ($($theme:ident)*) => {
        const TESTED: &[&str] = &[$(stringify!($theme)),*];

        $(#[test] fn $theme() { check(driver_contract::$theme); })*
    };
}

themes! {
    completion connections cancelling dropping deadlines waking shutting_down ends buffers datagrams threads
}

#[test]
#[cfg_attr(miri, ignore = "a long run of random traffic")]
fn random_traffic() {
    check(driver_contract::random_traffic);
}

#[test]
#[cfg_attr(miri, ignore = "a long run of random traffic")]
fn random_traffic_with_short_reads_and_writes() {
    driver_contract::random_traffic(&DriverHarness::new(|| Arc::new(SimDriver::alone(1).short(0.5))));
}

#[test]
#[cfg_attr(miri, ignore = "opens thousands of sockets")]
fn many_sockets() {
    driver_contract::many_sockets(&DriverHarness::new(|| Arc::new(SimDriver::alone(1))));
}

#[test]
fn exhaustion() {
    let harness = DriverHarness::new(|| Arc::new(SimDriver::alone(1).descriptors(DESCRIPTORS)));
    driver_contract::exhaustion(&harness.descriptors_run_out(DESCRIPTORS));
}

#[test]
fn all_themes_of_the_suite_are_tested() {
    let others = ["many_sockets", "exhaustion", "random_traffic"];
    for (theme, _) in THEMES {
        assert!(TESTED.contains(theme) || others.contains(theme), "{theme}");
    }
}
