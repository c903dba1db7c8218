//! The suite for all drivers: one test for each theme, for the poller of this system and for those of other
//! systems.

use std::io;
use std::sync::Arc;

use convoke_net::testing::driver_contract;
use convoke_net::testing::driver_contract::{DriverHarness, MANY_SOCKETS, THEMES};
use convoke_poll::PollDriver;

#[cfg(unix)]
use crate::descriptors::{descriptor_limit, set_descriptor_limit};

/// Descriptors that the test itself has open: sockets of the suite, pipes of the test runner.
const OTHERS: usize = 200;

fn harness(make: fn() -> io::Result<PollDriver>) -> DriverHarness {
    let harness = DriverHarness::new(move || Arc::new(make().expect("a driver can be created")));
    #[cfg(unix)]
    let harness = {
        let descriptors = descriptors(MANY_SOCKETS + OTHERS);
        if descriptors < MANY_SOCKETS + OTHERS {
            eprintln!("there are only descriptors for {descriptors} sockets");
        }
        harness.sockets(descriptors.saturating_sub(OTHERS))
    };
    harness
}

macro_rules! themes {
    ($($theme:ident)*) => {
        const TESTED: &[&str] = &[$(stringify!($theme)),*];

        mod own {
            use super::*;
            $(#[test] fn $theme() { driver_contract::$theme(&harness(PollDriver::new)); })*
        }

        mod portable {
            use super::*;
            $(#[test] fn $theme() { driver_contract::$theme(&harness(PollDriver::portable)); })*
        }

        mod without_edges {
            use super::*;
            $(#[test] fn $theme() { driver_contract::$theme(&harness(PollDriver::portable_without_edges)); })*
        }
    };
}

themes! {
    completion connections cancelling dropping deadlines waking shutting_down many_sockets ends buffers datagrams threads
    random_traffic
}

/// Tested in a process of its own: see `descriptors_run_out.rs`.
const ELSEWHERE: &str = "exhaustion";

#[test]
fn every_theme_is_tested() {
    let themes: Vec<_> = THEMES.iter().map(|(name, _)| *name).filter(|name| *name != ELSEWHERE).collect();
    assert!(themes.iter().all(|name| TESTED.contains(name)), "{themes:?}");
}

/// Raises the limit of descriptors as far as allowed, up to `wanted`. Returns the limit.
#[cfg(unix)]
fn descriptors(wanted: usize) -> usize {
    let limit = descriptor_limit();
    let most = limit.rlim_max.min(wanted as libc::rlim_t);
    if limit.rlim_cur < most {
        set_descriptor_limit(most);
    }
    usize::try_from(limit.rlim_cur.max(most)).unwrap_or(usize::MAX)
}
