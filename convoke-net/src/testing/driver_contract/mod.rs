//! The contract of a [`Driver`], as a suite that any driver can be put through: through contexts and sockets, as programs use it.
//!
//! ```
//! use std::sync::Arc;
//!
//! use convoke::runtime::driver;
//! use convoke::testing::driver_contract::{Harness, check};
//!
//! check(&Harness::new(|| driver().unwrap()).sockets(100));
//! ```
//!
//! One test for each of the [`THEMES`] says by its name what is broken:
//!
//! ```
//! use convoke::testing::driver_contract::{Harness, ends};
//!
//! # fn driver() -> std::sync::Arc<dyn convoke::driver::Driver> { convoke::runtime::driver().unwrap() }
//! // #[test]
//! fn half_closed_reset_ended() {
//!     ends(&Harness::new(driver));
//! }
//! # half_closed_reset_ended();
//! ```

mod buffers;
mod cancelling;
mod completion;
mod connections;
mod datagrams;
mod deadlines;
mod dropping;
mod ends;
mod exhaustion;
mod many_sockets;
mod random;
mod shutting_down;
mod stage;
mod threads;
mod waking;

use core::fmt;
use core::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use convoke_io::driver::Driver;

/// Drivers under test, and what they promise or lack. Each part of the suite makes a driver of its own.
pub struct Harness {
    make: Box<dyn Fn() -> Arc<dyn Driver> + Send + Sync>,
    at: IpAddr,
    one_thread: bool,
    sockets: usize,
    descriptors: Option<usize>,
}

/// How many sockets are open at once, unless the harness says that there cannot be so many.
pub const MANY_SOCKETS: usize = if cfg!(miri) { 100 } else { 10_000 };

impl Harness {
    /// Drivers that are made like this.
    pub fn new(make: impl Fn() -> Arc<dyn Driver> + Send + Sync + 'static) -> Self {
        let at = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Self { make: Box::new(make), at, one_thread: false, sockets: MANY_SOCKETS, descriptors: None }
    }

    /// Sockets are made at this address, not at that of the loopback device.
    pub fn at(mut self, address: IpAddr) -> Self {
        self.at = address;
        self
    }

    /// All of it happens on one thread, as in a simulation: what needs several is left out.
    pub fn one_thread(mut self) -> Self {
        self.one_thread = true;
        self
    }

    /// There cannot be more sockets than this at once.
    pub fn sockets(mut self, sockets: usize) -> Self {
        self.sockets = self.sockets.min(sockets);
        self
    }

    /// There is a limit of about so many descriptors, small enough to be reached: then reaching it is tried.
    pub fn descriptors_run_out(mut self, descriptors: usize) -> Self {
        self.descriptors = Some(descriptors);
        self
    }
}

impl fmt::Debug for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Harness")
            .field("at", &self.at)
            .field("one_thread", &self.one_thread)
            .field("sockets", &self.sockets)
            .field("descriptors", &self.descriptors)
            .finish_non_exhaustive()
    }
}

/// A part of the suite.
pub type Theme = fn(&Harness);

/// All parts of the suite, with their names.
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
    ("random", random),
];

/// Puts the driver through all of it.
///
/// # Panics
/// If it breaks the contract.
pub fn check(harness: &Harness) {
    for (_, theme) in THEMES {
        theme(harness);
    }
}

/// Each operation is finished exactly once, whoever else waits; and what waits is counted.
///
/// # Panics
/// If not. So for all parts.
pub fn completion(harness: &Harness) {
    completion::each_operation_is_finished_once(harness);
    completion::what_can_be_done_at_once_does_not_wait(harness);
    completion::all_who_wait_for_a_source_are_told(harness);
    completion::both_directions_wait_at_once(harness);
    completion::a_context_runs_until_nothing_is_in_flight(harness);
}

/// Connections are made, refused and taken.
pub fn connections(harness: &Harness) {
    connections::those_who_accept_each_get_one(harness);
    connections::one_that_is_refused_is_an_error(harness);
    connections::an_address_that_is_taken_is_an_error(harness);
    connections::both_ends_know_where_they_are(harness);
    connections::connections_that_came_before_are_accepted(harness);
}

/// What is cancelled before, while or after it happens loses no byte.
pub fn cancelling(harness: &Harness) {
    cancelling::a_stop_before_it_begins_leaves_everything_in_place(harness);
    cancelling::a_stop_while_it_waits_leaves_everything_in_place(harness);
    cancelling::a_stop_after_it_has_happened_comes_too_late(harness);
    cancelling::reads_that_are_stopped_at_any_time_lose_nothing(harness);
    cancelling::writes_that_are_stopped_at_any_time_lose_nothing(harness);
    cancelling::one_of_several_can_be_cancelled(harness);
}

/// Futures that are dropped while they wait.
pub fn dropping(harness: &Harness) {
    dropping::a_read_that_is_dropped_has_read_nothing(harness);
    dropping::one_who_was_forgotten_counts_until_the_socket_goes(harness);
    dropping::a_buffer_of_its_own_is_given_back_before_the_task_ends(harness);
    dropping::an_operation_keeps_its_socket(harness);
    dropping::a_socket_that_goes_makes_room_for_the_next(harness);
}

/// Waits end when the clock says so, in the order of their times.
pub fn deadlines(harness: &Harness) {
    deadlines::a_time_that_has_passed_is_not_waited_for(harness);
    deadlines::a_wait_ends_by_its_time(harness);
    deadlines::sleeps_end_in_the_order_of_their_times(harness);
    deadlines::input_does_not_wait_for_a_time(harness);
}

/// Whoever wakes a driver ends its wait, always.
pub fn waking(harness: &Harness) {
    waking::a_wake_ends_the_next_wait(harness);
    waking::many_wakes_are_one(harness);
    waking::no_wake_of_another_thread_is_lost(harness);
    waking::a_storm_of_wakes_disturbs_nobody(harness);
}

/// Nothing waits for ever for a driver that has shut down.
pub fn shutting_down(harness: &Harness) {
    shutting_down::what_is_in_flight_fails(harness);
    shutting_down::what_is_submitted_later_fails(harness);
    shutting_down::a_context_that_goes_ends_what_waits(harness);
    shutting_down::sockets_may_outlive_their_driver(harness);
}

/// [`MANY_SOCKETS`], or as many as the harness has.
pub fn many_sockets(harness: &Harness) {
    many_sockets::all_wait_and_all_are_told(harness);
}

/// Half-close, end, reset.
pub fn ends(harness: &Harness) {
    ends::half_a_connection_can_be_closed(harness);
    ends::the_end_comes_after_the_last_byte(harness);
    ends::the_end_stays(harness);
    ends::a_reset_is_an_error(harness);
    ends::writing_to_who_is_gone_is_an_error_in_the_end(harness);
    ends::the_end_wakes_who_waits(harness);
    ends::a_reset_wakes_who_waits_to_write(harness);
}

/// Buffers of no length, of too much, and several at once.
pub fn buffers(harness: &Harness) {
    buffers::no_room_and_no_words_are_done_at_once(harness);
    buffers::more_room_than_bytes(harness);
    buffers::more_bytes_than_room(harness);
    buffers::more_bytes_than_the_kernel_takes(harness);
    buffers::several_buffers_at_once(harness);
    buffers::more_buffers_than_a_kernel_takes(harness);
    buffers::a_peek_leaves_what_it_saw(harness);
}

/// Datagrams keep their borders.
pub fn datagrams(harness: &Harness) {
    datagrams::each_has_its_borders_and_its_sender(harness);
    datagrams::what_does_not_fit_is_lost(harness);
    datagrams::one_of_no_length_is_one(harness);
    datagrams::a_socket_can_be_bound_to_one_peer(harness);
}

/// Sockets are used from other threads than the one that waits.
pub fn threads(harness: &Harness) {
    threads::sockets_are_used_from_everywhere(harness);
    threads::two_threads_share_a_connection(harness);
    threads::a_wait_ends_when_the_last_has_left_on_another_thread(harness);
}

/// No descriptor left is an error to who asks for one, and to nobody else.
pub fn exhaustion(harness: &Harness) {
    exhaustion::no_descriptor_is_an_error_and_then_it_goes_on(harness);
}

/// Traffic with stops in between, in an order that seeds decide.
pub fn random(harness: &Harness) {
    for seed in 1..=4 {
        check_random(harness, seed);
    }
}

/// The part of [`random`] that comes from one seed, to run again one that failed.
pub fn check_random(harness: &Harness, seed: u64) {
    let _named = random::NamesSeed(seed);
    random::traffic_with_stops(harness, seed);
    random::traffic_between_threads(harness, seed);
}
