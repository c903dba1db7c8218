//! The rules of stop sources and tokens, one by one, through the public interface.

#![allow(unsafe_code)]

use std::pin::pin;
use std::time::{Duration, Instant};

use convoke_core::raw::InPlaceStop;
use convoke_core::{StopReason, StopRef, StopSource, StopToken};

use convoke_testing::workshop::counting::allocations;

#[test]
fn a_stop_is_requested_once_and_keeps_its_first_reason() {
    let source = StopSource::new();
    let token = source.token();
    assert_eq!((token.stop_requested(), token.reason()), (false, None));
    assert!(source.request_stop(StopReason::Named("first")));
    assert!(!source.request_stop(StopReason::Shutdown));
    assert!(!source.clone().request_stop(StopReason::Shutdown), "a clone is the same source");
    assert!(source.stop_requested());
    assert_eq!((token.stop_requested(), token.reason()), (true, Some(StopReason::Named("first"))));
}

#[test]
fn every_reason_is_stored_and_displayed() {
    for (reason, text) in [
        (StopReason::Requested, "stop requested"),
        (StopReason::Deadline, "deadline passed"),
        (StopReason::Sibling, "a sibling ended early"),
        (StopReason::Lost, "a sibling was faster"),
        (StopReason::Abandoned, "its result is not wanted any more"),
        (StopReason::Shutdown, "shutting down"),
        (StopReason::Signal(15), "signal 15"),
        (StopReason::Named("lunch"), "lunch"),
    ] {
        let source = StopSource::new();
        let child = source.token().child();
        source.request_stop(reason);
        assert_eq!(child.token().reason(), Some(reason), "a child gets the parent's reason");
        assert_eq!(reason.to_string(), text);
    }
}

#[test]
fn dropping_the_source_requests_nothing() {
    let token = StopSource::new().token();
    assert!(!token.stop_requested());
}

#[test]
fn a_stop_is_possible_only_while_a_source_is_left() {
    let source = StopSource::new();
    let (token, clone) = (source.token(), source.clone());
    drop(source);
    assert!(token.stop_possible(), "a clone is left");
    drop(clone);
    assert!(!token.stop_possible() && !token.clone().as_ref().stop_possible());
    // A request that was made stays possible.
    let source = StopSource::new();
    let token = source.token();
    source.request_stop(StopReason::Requested);
    drop(source);
    assert!(token.stop_possible());
}

#[test]
fn a_stop_of_a_child_is_possible_while_any_ancestor_is_left() {
    let grandparent = StopSource::new();
    let parent = grandparent.token().child();
    let child = parent.token().child();
    let token = child.token();
    drop((child, parent));
    assert!(token.stop_possible());
    drop(grandparent);
    assert!(!token.stop_possible());
    // New sources below it make a stop of their own tokens possible, and not of this one.
    let below = token.child();
    assert!(below.token().stop_possible() && !token.stop_possible());
}

#[test]
fn the_token_of_no_source_costs_nothing() {
    const NEVER: StopToken = StopToken::never();
    assert!(!NEVER.stop_possible() && !NEVER.stop_requested());
    assert_eq!((NEVER.reason(), NEVER.deadline()), (None, None));
    assert!(!StopRef::never().stop_possible());
    assert_eq!(NEVER, StopToken::default());
    let count = allocations(|| {
        let token = NEVER.clone();
        let callback = pin!(token.as_ref().on_stop(|_| unreachable!()));
        callback.as_ref().register();
        assert!(format_free_debug_is_unregistered(&callback), "there is no source to register with");
        _ = token.as_ref().to_token();
    });
    assert_eq!(count, 0);
}

/// Returns true if the callback shows that it is not registered, without allocating.
fn format_free_debug_is_unregistered(callback: &impl std::fmt::Debug) -> bool {
    struct Search(bool);
    impl std::fmt::Write for Search {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            self.0 |= text.contains("false");
            Ok(())
        }
    }
    let mut search = Search(false);
    std::fmt::write(&mut search, format_args!("{callback:?}")).unwrap();
    search.0
}

#[test]
fn tokens_are_equal_if_they_are_of_one_source() {
    let (a, b) = (StopSource::new(), StopSource::new());
    assert_eq!(a.token(), a.clone().token());
    assert_ne!(a.token(), b.token());
    assert_ne!(a.token(), StopToken::never());
    assert_ne!(a.token(), a.token().child().token(), "a child is a source of its own");
    assert_eq!(a.token().as_ref().to_token(), a.token());
}

#[test]
fn the_earlier_deadline_counts() {
    let now = Instant::now();
    let (soon, late) = (now + Duration::from_secs(1), now + Duration::from_secs(2));
    assert_eq!(StopSource::new().token().deadline(), None);
    let parent = StopSource::with_deadline(soon).token();
    assert_eq!(parent.deadline(), Some(soon));
    assert_eq!(parent.child().token().deadline(), Some(soon), "inherited");
    assert_eq!(StopSource::child_with_deadline(&parent, late).token().deadline(), Some(soon));
    let parent = StopSource::with_deadline(late).token();
    assert_eq!(StopSource::child_with_deadline(&parent, soon).token().deadline(), Some(soon));
    let free = StopSource::new().token();
    assert_eq!(StopSource::child_with_deadline(&free, soon).token().deadline(), Some(soon));
    assert_eq!(StopSource::child_with_deadline(&StopToken::never(), soon).token().deadline(), Some(soon));
    let in_place = InPlaceStop::new(Some(soon));
    // SAFETY: `in_place` is a local that does not move from here on.
    assert_eq!(unsafe { in_place.token() }.to_token().deadline(), Some(soon));
}

#[test]
fn a_deadline_that_has_passed_stops_nothing_by_itself() {
    let source = StopSource::with_deadline(Instant::now());
    assert!(!source.stop_requested(), "a source has no clock: other code makes the request");
}

#[test]
fn children_stop_with_the_parent_and_not_the_other_way_round() {
    let parent = StopSource::new();
    let (one, two) = (parent.token().child(), StopSource::child_of(&parent.token()));
    let grandchild = one.token().child();
    one.request_stop(StopReason::Lost);
    assert_eq!(grandchild.token().reason(), Some(StopReason::Lost));
    assert!(!parent.stop_requested() && !two.stop_requested());
    parent.request_stop(StopReason::Shutdown);
    assert_eq!(two.token().reason(), Some(StopReason::Shutdown));
    assert_eq!(one.token().reason(), Some(StopReason::Lost), "it had its own reason first");
}

#[test]
fn a_child_of_a_stopped_parent_is_created_stopped() {
    let parent = StopSource::new();
    parent.request_stop(StopReason::Deadline);
    assert_eq!(parent.token().child().token().reason(), Some(StopReason::Deadline));
}

#[test]
fn a_child_of_no_source_stops_alone() {
    let child = StopToken::never().child();
    assert!(child.token().stop_possible());
    assert!(child.request_stop(StopReason::Requested));
}

#[test]
fn a_token_of_a_child_stays_linked_after_its_source_is_dropped() {
    let parent = StopSource::new();
    let token = parent.token().child().token();
    parent.request_stop(StopReason::Shutdown);
    assert_eq!(token.reason(), Some(StopReason::Shutdown));
}

#[test]
fn a_child_that_was_dropped_is_not_called_and_leaks_nothing() {
    let parent = StopSource::new();
    for _ in 0..3 {
        drop(parent.token().child());
    }
    assert!(parent.request_stop(StopReason::Requested));
}
