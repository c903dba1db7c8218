//! The selection of one point of an exploration.

use convoke_sim::raw::chosen;

#[test]
fn one_point_is_run_alone_if_it_is_there() {
    assert_eq!(chosen(5, None), 0..5);
    assert_eq!(chosen(5, Some(4)), 4..5);
    assert!(chosen(5, Some(5)).is_empty());
    assert!(chosen(5, Some(usize::MAX)).is_empty());
}
