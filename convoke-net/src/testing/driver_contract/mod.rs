//! The contract of a [`Driver`] as a test suite for any driver. It tests through contexts and sockets, as
//! programs use a driver.
//!
//! ```
//! use std::sync::Arc;
//!
//! use convoke::runtime::driver;
//! use convoke::testing::driver_contract::{DriverHarness, check};
//!
//! check(&DriverHarness::new(|| driver().unwrap()).sockets(100));
//! ```
//!
//! To get one test for each of the [`THEMES`], so that the name of a failed test says what is broken:
//!
//! ```
//! use convoke::testing::driver_contract::{DriverHarness, ends};
//!
//! # fn driver() -> std::sync::Arc<dyn convoke::driver::Driver> { convoke::runtime::driver().unwrap() }
//! // #[test]
//! fn half_closed_reset_ended() {
//!     ends(&DriverHarness::new(driver));
//! }
//! # half_closed_reset_ended();
//! ```
//!
//! `fixture` has what the themes share: a context over a new driver, and connections in it. Each of the other
//! modules is one theme.

mod buffers;
mod cancelling;
mod completion;
mod connections;
mod datagrams;
mod deadlines;
mod dropping;
mod ends;
mod exhaustion;
mod fixture;
mod many_sockets;
mod random;
mod shutting_down;
mod threads;
mod waking;

use core::fmt;
use core::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use convoke_io::driver::Driver;

/// A factory of the drivers under test, and their limits. Each part of the suite creates a driver of its own.
pub struct DriverHarness {
    make: Box<dyn Fn() -> Arc<dyn Driver> + Send + Sync>,
    at: IpAddr,
    one_thread: bool,
    sockets: usize,
    descriptors: Option<usize>,
}

/// The number of sockets that are open at once, unless the harness sets a lower limit.
pub const MANY_SOCKETS: usize = if cfg!(miri) { 30 } else { 10_000 };

impl DriverHarness {
    /// Creates a harness for the drivers that `make` creates.
    pub fn new(make: impl Fn() -> Arc<dyn Driver> + Send + Sync + 'static) -> Self {
        let at = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Self { make: Box::new(make), at, one_thread: false, sockets: MANY_SOCKETS, descriptors: None }
    }

    /// Sets the address of sockets. The default is the IPv4 loopback address.
    pub fn at(mut self, address: IpAddr) -> Self {
        self.at = address;
        self
    }

    /// Restricts the suite to one thread, as in a simulation: tests that need several are skipped.
    pub fn one_thread(mut self) -> Self {
        self.one_thread = true;
        self
    }

    /// Limits the number of sockets that are open at once.
    pub fn sockets(mut self, sockets: usize) -> Self {
        self.sockets = self.sockets.min(sockets);
        self
    }

    /// Announces a limit of about this many descriptors, small enough to be reached: the suite then tests
    /// reaching it.
    pub fn descriptors_run_out(mut self, descriptors: usize) -> Self {
        self.descriptors = Some(descriptors);
        self
    }
}

impl fmt::Debug for DriverHarness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverHarness")
            .field("at", &self.at)
            .field("one_thread", &self.one_thread)
            .field("sockets", &self.sockets)
            .field("descriptors", &self.descriptors)
            .finish_non_exhaustive()
    }
}

/// A part of the suite.
pub type Theme = fn(&DriverHarness);

/// All parts of the suite with their names.
pub const THEMES: &[(&str, Theme)] = &[
    ("completion", completion),
    ("connections", connections),
    ("cancelling", cancelling),
    ("dropping", dropping),
    ("deadlines", deadlines),
    ("waking", waking),
    ("shutting_down", shutting_down),
    ("many_sockets", many_sockets),
    ("ends", ends),
    ("buffers", buffers),
    ("datagrams", datagrams),
    ("threads", threads),
    ("exhaustion", exhaustion),
    ("random_traffic", random_traffic),
];

/// Runs the whole suite.
///
/// # Panics
/// If the driver breaks the contract.
pub fn check(harness: &DriverHarness) {
    for (_, theme) in THEMES {
        theme(harness);
    }
}

/// Tests that each operation is finished exactly once, and that waiters are counted.
///
/// # Panics
/// If the driver breaks the contract, like all parts of the suite.
pub fn completion(harness: &DriverHarness) {
    completion::each_operation_is_finished_once(harness);
    completion::an_operation_that_is_ready_does_not_wait(harness);
    completion::all_waiters_of_a_source_are_woken(harness);
    completion::both_directions_wait_at_once(harness);
    completion::a_context_runs_until_nothing_is_in_flight(harness);
}

/// Tests that connections are made, refused and accepted.
pub fn connections(harness: &DriverHarness) {
    connections::each_accept_gets_one_connection(harness);
    connections::a_refused_connection_is_an_error(harness);
    connections::an_address_in_use_is_an_error(harness);
    connections::both_ends_know_their_addresses(harness);
    connections::connections_made_before_the_accept_are_accepted(harness);
    connections::a_stream_is_bound_and_configured_before_it_connects(harness);
}

/// Tests that cancelling an operation before, during or after its transfer loses no byte.
pub fn cancelling(harness: &DriverHarness) {
    cancelling::a_stop_before_the_start_transfers_nothing(harness);
    cancelling::a_stop_during_the_wait_transfers_nothing(harness);
    cancelling::a_stop_after_the_transfer_loses_nothing(harness);
    cancelling::reads_that_are_stopped_at_any_time_lose_nothing(harness);
    cancelling::writes_that_are_stopped_at_any_time_lose_nothing(harness);
    cancelling::some_of_several_operations_are_cancelled(harness);
}

/// Tests futures that are dropped while they wait.
pub fn dropping(harness: &DriverHarness) {
    dropping::a_dropped_read_has_read_nothing(harness);
    dropping::a_leaked_watcher_counts_until_its_socket_is_dropped(harness);
    dropping::an_owned_buffer_is_released_before_the_task_ends(harness);
    dropping::an_operation_keeps_its_socket_open(harness);
    dropping::a_dropped_socket_leaves_its_key_to_the_next(harness);
}

/// Tests that waits end at their deadline, in the order of their deadlines.
pub fn deadlines(harness: &DriverHarness) {
    deadlines::a_deadline_in_the_past_does_not_wait(harness);
    deadlines::a_wait_ends_at_its_deadline(harness);
    deadlines::sleeps_end_in_the_order_of_their_deadlines(harness);
    deadlines::input_ends_a_wait_before_its_deadline(harness);
}

/// Tests that each wake-up ends a wait.
pub fn waking(harness: &DriverHarness) {
    waking::a_wake_ends_the_next_wait(harness);
    waking::many_wakes_end_one_wait(harness);
    waking::no_wake_from_another_thread_is_lost(harness);
    waking::a_storm_of_wakes_does_not_disturb_io(harness);
}

/// Tests that nothing waits for ever after a shutdown.
pub fn shutting_down(harness: &DriverHarness) {
    shutting_down::operations_in_flight_fail(harness);
    shutting_down::operations_submitted_later_fail(harness);
    shutting_down::dropping_a_context_ends_its_waiters(harness);
    shutting_down::sockets_may_outlive_their_driver(harness);
}

/// Tests [`MANY_SOCKETS`] sockets, or as many as the harness allows.
pub fn many_sockets(harness: &DriverHarness) {
    many_sockets::all_wait_and_all_are_woken(harness);
}

/// Tests half-closed, ended and reset connections.
pub fn ends(harness: &DriverHarness) {
    ends::a_connection_can_be_half_closed(harness);
    ends::the_end_comes_after_the_last_byte(harness);
    ends::the_end_is_read_again_and_again(harness);
    ends::a_reset_is_an_error(harness);
    ends::writing_to_a_closed_peer_fails_eventually(harness);
    ends::the_end_wakes_readers(harness);
    ends::a_reset_wakes_writers(harness);
    ends::a_drop_with_unread_input_resets(harness);
    ends::a_lingering_close_delivers_what_was_written(harness);
    ends::a_lingering_close_of_a_stopped_body_delivers_what_was_written(harness);
}

/// Tests buffers of length zero, of excessive length, and several at once.
pub fn buffers(harness: &DriverHarness) {
    buffers::spare_capacity_is_filled(harness);
    buffers::empty_buffers_are_done_at_once(harness);
    buffers::a_buffer_larger_than_the_bytes(harness);
    buffers::a_buffer_smaller_than_the_bytes(harness);
    buffers::more_bytes_than_the_kernel_buffers(harness);
    buffers::several_buffers_at_once(harness);
    buffers::more_buffers_than_a_kernel_takes(harness);
    buffers::a_peek_consumes_nothing(harness);
}

/// Tests that datagrams keep their boundaries.
pub fn datagrams(harness: &DriverHarness) {
    datagrams::each_has_its_boundaries_and_its_sender(harness);
    datagrams::bytes_that_do_not_fit_are_lost(harness);
    datagrams::an_empty_datagram_arrives(harness);
    datagrams::a_socket_can_be_connected_to_one_peer(harness);
}

/// Tests sockets that are used on other threads than the one that waits.
pub fn threads(harness: &DriverHarness) {
    threads::sockets_are_used_on_other_threads(harness);
    threads::two_threads_share_a_connection(harness);
    threads::a_wait_ends_when_another_thread_removes_the_last_waiter(harness);
}

/// Tests that a lack of descriptors is an error only for calls that need one.
pub fn exhaustion(harness: &DriverHarness) {
    exhaustion::a_lack_of_descriptors_is_a_temporary_error(harness);
}

/// Tests random traffic with stops in between; seeds decide the order.
pub fn random_traffic(harness: &DriverHarness) {
    for seed in 1..=4 {
        check_random(harness, seed);
    }
}

/// Runs the part of [`random_traffic`] for one seed, to reproduce a failure.
pub fn check_random(harness: &DriverHarness, seed: u64) {
    let _print_seed = random::PrintSeed(seed);
    random::traffic_with_stops(harness, seed);
    random::traffic_between_threads(harness, seed);
}
