//! Waiters of a name lookup: one that arrives when the lookup ends, or when the last other waiter leaves,
//! gets an answer.

use std::io;
use std::sync::Arc;

use crate::model::{Reached, explore};
use convoke_core::raw::sync::thread;
use convoke_net::raw::{LookupWaiter, Lookups};
use convoke_testing::workshop::polled_by_hand::PolledByHand as ByHand;

/// Waits for the answer on this thread. Returns the number of addresses.
fn found(asker: &LookupWaiter) -> io::Result<usize> {
    ByHand::new(async { asker.found().await.map(|found| found.len()) }).wait()
}

#[test]
fn one_who_asks_while_a_lookup_ends_shares_it_or_begins_another() {
    static SHARED: Reached = Reached::new();
    static BEGAN: Reached = Reached::new();
    explore(3, || {
        let flights = Arc::new(Lookups::default());
        let (first, pilot) = flights.join("host");
        let pilot = pilot.expect("the first begins it");
        let lands = thread::spawn(move || pilot.finish(Ok(vec![([127, 0, 0, 1], 0).into()])));
        let (second, begins) = flights.join("host");
        match begins {
            None => SHARED.here(),
            Some(pilot) => {
                BEGAN.here();
                assert!(!pilot.stop_token().stop_requested(), "that is for the first one's end");
                pilot.finish(Ok(vec![([127, 0, 0, 1], 0).into()]));
            }
        }
        assert_eq!((found(&first).unwrap(), found(&second).unwrap()), (1, 1));
        lands.join().unwrap();
    });
    SHARED.assert("it came before the end");
    BEGAN.assert("it came after");
}

#[test]
fn one_who_asks_while_the_last_one_leaves_is_not_left_with_a_lookup_that_stops() {
    static STAYS: Reached = Reached::new();
    static STOPS: Reached = Reached::new();
    explore(3, || {
        let flights = Arc::new(Lookups::default());
        let (first, pilot) = flights.join("host");
        let pilot = pilot.expect("the first begins it");
        let leaves = thread::spawn(move || drop(first));
        let (second, begins) = flights.join("host");
        leaves.join().unwrap();
        let stops = pilot.stop_token().stop_requested();
        assert_eq!(stops, begins.is_some(), "stopped, and another begun, or neither");
        STOPS.here_if(stops);
        STAYS.here_if(!stops);
        // A lookup that is dropped without an answer fails its waiters.
        drop((pilot, begins));
        assert_eq!(found(&second).unwrap_err().kind(), io::ErrorKind::NotConnected);
    });
    STAYS.assert("there was somebody when the last one left");
    STOPS.assert("there was nobody");
}
