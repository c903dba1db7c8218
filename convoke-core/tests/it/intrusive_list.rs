//! The intrusive list.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use convoke_core::raw::{IntrusiveList, Linked, Links};

struct Number {
    links: Links<Self>,
    value: usize,
}

// SAFETY: `links` is a field that nothing else uses.
unsafe impl Linked for Number {
    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

fn values(list: &IntrusiveList<Number>) -> Vec<usize> {
    list.iter().map(|number| number.value).collect()
}

/// Adds each of these numbers to a list: even ones at the end, odd ones at the front.
fn listed(numbers: &[Number]) -> IntrusiveList<Number> {
    let mut list = IntrusiveList::new();
    for number in numbers {
        // SAFETY: the numbers outlive the list and do not move, and each is added once.
        unsafe {
            match number.value % 2 {
                0 => list.push_back(NonNull::from(number)),
                _ => list.push_front(NonNull::from(number)),
            }
        }
    }
    list
}

#[test]
fn nodes_are_removed_from_anywhere_once_and_the_order_stays() {
    let order = [3, 1, 0, 2, 4];
    for removed in 0..order.len() {
        let numbers: Vec<_> = (0..order.len()).map(|value| Number { links: Links::new(), value }).collect();
        let mut list = listed(&numbers);
        assert_eq!((values(&list), list.first().unwrap().value), (order.to_vec(), 3));
        let node = NonNull::from(&numbers[removed]);
        // SAFETY: it was added to this list.
        let again = unsafe { (list.remove(node), list.remove(node)) };
        assert_eq!(again, (true, false));
        let rest: Vec<_> = order.into_iter().filter(|value| *value != removed).collect();
        assert_eq!(values(&list), rest);
        // SAFETY: it was removed, and is added once.
        unsafe { list.push_front(node) };
        // SAFETY: `numbers` still exists.
        let popped: Vec<_> =
            core::iter::from_fn(|| list.pop_front()).map(|node| unsafe { node.as_ref() }.value).collect();
        assert_eq!(popped, [vec![removed], rest].concat());
        assert!(list.is_empty() && list.first().is_none());
    }
}
