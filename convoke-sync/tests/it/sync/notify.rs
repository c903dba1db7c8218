//! Tests of `Notify`.

use convoke::sync::Notify;

use crate::sync::polled::{polled, ready, waits};

#[test]
fn one_notification_is_stored_and_no_more() {
    let notify = Notify::new();
    notify.notify_one();
    notify.notify_one();
    ready(notify.notified());
    let _second = waits(notify.notified());
}

#[test]
fn notifications_go_to_waiters_in_order_and_are_not_stored() {
    let notify = Notify::new();
    let (mut first, mut second) = (waits(notify.notified()), waits(notify.notified()));
    notify.notify_one();
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    assert_eq!(second.poll(), None);
    assert_eq!(first.poll(), Some(()));
    notify.notify_one();
    assert_eq!(second.poll(), Some(()));
    let _third = waits(notify.notified());
}

#[test]
fn a_notified_waiter_that_is_dropped_passes_it_on() {
    let notify = Notify::new();
    let (first, second) = (waits(notify.notified()), waits(notify.notified()));
    notify.notify_one();
    drop(first);
    assert_eq!(second.wakes(), 1, "to the next waiter");
    drop(second);
    ready(notify.notified());
    let _last = waits(notify.notified());
}

#[test]
fn all_who_wait_now_are_notified_and_nothing_is_stored() {
    let notify = Notify::new();
    let (mut first, mut second) = (waits(notify.notified()), waits(notify.notified()));
    let mut unpolled = polled(notify.notified());
    notify.notify_waiters();
    assert_eq!((first.poll(), second.poll(), unpolled.poll()), (Some(()), Some(()), Some(())));
    let mut late = waits(notify.notified());
    assert_eq!(late.poll(), None);
}

#[test]
fn a_waiter_that_was_notified_with_all_passes_nothing_on() {
    let notify = Notify::new();
    let first = waits(notify.notified());
    notify.notify_waiters();
    let second = waits(notify.notified());
    drop(first);
    assert_eq!(second.wakes(), 0);
}

#[test]
fn a_notification_for_all_leaves_the_stored_one() {
    let notify = Notify::new();
    let mut unpolled = polled(notify.notified());
    notify.notify_one();
    notify.notify_waiters();
    assert_eq!(unpolled.poll(), Some(()), "by the notification for all");
    ready(notify.notified());
    let _last = waits(notify.notified());
}
