//! `Parked`: operations that wait in a driver, in order. The list is linked through the operations, so
//! parking allocates nothing until the list is long.
//!
//! An [`OperationId`] is an address that may outlive its operation. So it is compared, never dereferenced: a
//! short list is searched, and a long one has an index.

#![allow(unsafe_code)]

use core::fmt;
use core::ptr::{self, NonNull};
use std::collections::HashMap;

use super::{InFlight, IoOperation, OperationId};
use convoke_core::raw::visit_step;

/// The length of the longest list without an index: searching it is cheaper than maintaining one.
const LINEAR_SEARCH: usize = 16;

/// Maps each operation in the list to its predecessor; null for the first.
type Index = HashMap<OperationId, *mut IoOperation>;

/// A list of waiting operations. A readiness driver has one for each direction of a source. Dropping the list
/// finishes all of them with an error.
///
/// 1. The list holds the `InFlight`s of its operations, and so owns their `next` fields (rule 2 of
///    `IoOperation`). Each operation stays pinned until it is removed (rule 4 there).
/// 2. `last` is the operation whose `next` is null. It is null if and only if `first` is.
/// 3. The index has an entry for each operation of the list, or none at all. It is filled when the list
///    becomes longer than `LINEAR_SEARCH`, and empties with the list; its memory is kept for later.
pub struct Parked {
    first: *mut IoOperation,
    last: *mut IoOperation,
    length: usize,
    index: Option<Box<Index>>,
}

// SAFETY: rule 1: it owns its operations like `InFlight`s, which are `Send`.
unsafe impl Send for Parked {}
// SAFETY: a shared reference gives only `is_empty`, which reads no operation.
unsafe impl Sync for Parked {}

impl Parked {
    /// Creates an empty list.
    pub const fn new() -> Self {
        Self { first: ptr::null_mut(), last: ptr::null_mut(), length: 0, index: None }
    }

    /// Returns true if no operation waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Adds an operation at the end.
    pub fn push(&mut self, operation: InFlight) {
        let operation = operation.into_raw();
        let before = self.last;
        // SAFETY: rule 1: `operation` came in as an `InFlight`, and `before` is `last`, which is in the list
        // or null.
        unsafe {
            *operation.as_ref().next.get() = ptr::null_mut();
            self.link(before, operation.as_ptr());
        }
        self.last = operation.as_ptr();
        self.count_linked(operation, before);
    }

    /// Takes the first operation.
    #[inline]
    pub fn pop(&mut self) -> Option<InFlight> {
        let first = NonNull::new(self.first)?;
        // SAFETY: `first` is in the list (rule 2), and the first has no predecessor.
        Some(unsafe { self.unlink(first, ptr::null_mut()) })
    }

    /// Puts an operation back at the front.
    pub fn put_back(&mut self, operation: InFlight) {
        let operation = operation.into_raw();
        let after = self.first;
        // SAFETY: rule 1: `operation` came in as an `InFlight`, so its `next` is the list's.
        unsafe { *operation.as_ref().next.get() = after };
        self.first = operation.as_ptr();
        self.set_predecessor(after, operation.as_ptr());
        if after.is_null() {
            self.last = operation.as_ptr();
        }
        self.count_linked(operation, ptr::null_mut());
    }

    /// Removes the operation with this id, if it is in the list.
    pub fn remove(&mut self, id: OperationId) -> Option<InFlight> {
        let (found, before) = match self.filled_index() {
            Some(index) => self.follow(*index.get(&id)?)?,
            None => self.walk_to(id)?,
        };
        // SAFETY: `follow` or `walk_to` found both in the list, `found` right behind `before`.
        Some(unsafe { self.unlink(found, before) })
    }

    /// Returns the index if it has entries (rule 3).
    fn filled_index(&self) -> Option<&Index> {
        self.index.as_deref().filter(|index| !index.is_empty())
    }

    /// Returns the operation behind `before` together with `before`. `before` is in the list, or null for the
    /// first.
    fn follow(&self, before: *mut IoOperation) -> Option<(NonNull<IoOperation>, *mut IoOperation)> {
        visit_step();
        let found = match NonNull::new(before) {
            // SAFETY: rule 1: `before` is in the list, since it came from `first`, from a `next` or from the
            // index.
            Some(current) => unsafe { *current.as_ref().next.get() },
            None => self.first,
        };
        NonNull::new(found).map(|found| (found, before))
    }

    /// Searches the list from the front for this id. Returns the operation and its predecessor.
    fn walk_to(&self, id: OperationId) -> Option<(NonNull<IoOperation>, *mut IoOperation)> {
        let mut before = ptr::null_mut();
        while let Some((current, _)) = self.follow(before) {
            if OperationId::of(current) == id {
                return Some((current, before));
            }
            before = current.as_ptr();
        }
        None
    }

    /// Unlinks `found` and removes it from the index. The caller takes over the obligation.
    ///
    /// # Safety
    /// `found` is in the list, and `before` is its predecessor, or null if it is the first.
    #[inline]
    unsafe fn unlink(&mut self, found: NonNull<IoOperation>, before: *mut IoOperation) -> InFlight {
        // SAFETY: rule 1: `found` and `before` are in the list, as the caller promises, so their `next`
        // fields are ours.
        unsafe {
            let after = *found.as_ref().next.get();
            self.link(before, after);
            if after.is_null() {
                self.last = before;
            }
            self.length -= 1;
            if let Some(index) = self.index.as_deref_mut().filter(|index| !index.is_empty()) {
                index.remove(&OperationId::of(found));
            }
            self.set_predecessor(after, before);
            InFlight::new(found)
        }
    }

    /// Makes `after` the successor of `before`, or the first if `before` is null.
    ///
    /// # Safety
    /// `before` is in the list, or null.
    #[inline]
    unsafe fn link(&mut self, before: *mut IoOperation, after: *mut IoOperation) {
        match NonNull::new(before) {
            // SAFETY: rule 1: `before` is in the list, as the caller promises.
            Some(before) => unsafe { *before.as_ref().next.get() = after },
            None => self.first = after,
        }
    }

    /// Records in the index, if it has entries, that `before` precedes `after`. Does nothing if `after` is
    /// null.
    #[inline]
    fn set_predecessor(&mut self, after: *mut IoOperation, before: *mut IoOperation) {
        if let (Some(index), Some(after)) = (&mut self.index, NonNull::new(after))
            && let Some(noted) = index.get_mut(&OperationId::of(after))
        {
            *noted = before;
        }
    }

    /// Counts `operation`, which was linked behind `before` or at the front, and keeps rule 3.
    fn count_linked(&mut self, operation: NonNull<IoOperation>, before: *mut IoOperation) {
        self.length += 1;
        if let Some(index) = self.index.as_deref_mut().filter(|index| !index.is_empty()) {
            index.insert(OperationId::of(operation), before);
        } else if self.length > LINEAR_SEARCH {
            self.fill_index();
        }
    }

    #[cold]
    fn fill_index(&mut self) {
        let mut index = self.index.take().unwrap_or_default();
        let mut before = ptr::null_mut();
        while let Some((current, _)) = self.follow(before) {
            index.insert(OperationId::of(current), before);
            before = current.as_ptr();
        }
        self.index = Some(index);
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        while let Some(operation) = self.pop() {
            drop(operation);
        }
    }
}

impl Default for Parked {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Parked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parked").field("empty", &self.is_empty()).finish()
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::super::{Address, Request};
    use super::*;
    use convoke_core::raw::count_steps;

    /// Creates operations in flight whose end is not reported. They do not move: the vector does not grow.
    fn operations(count: usize) -> (Vec<IoOperation>, Vec<InFlight>) {
        let operations: Vec<_> = (0..count).map(|_| IoOperation::new()).collect();
        let begin = |operation: &IoOperation| {
            let request = Request::Connect(Box::new(Address::Unnamed));
            // SAFETY: the operation is idle, and stays in its vector until the test has finished it. The
            // request has no buffer.
            unsafe { operation.begin(request) }
        };
        let in_flight = operations.iter().map(begin).collect();
        (operations, in_flight)
    }

    fn ids(parked: &mut Parked) -> Vec<OperationId> {
        core::iter::from_fn(|| parked.pop()).map(|operation| operation.id()).collect()
    }

    #[test]
    fn removing_from_the_middle_and_putting_back_keep_the_order() {
        for count in [1, 2, LINEAR_SEARCH, LINEAR_SEARCH + 1, 3 * LINEAR_SEARCH] {
            let (_operations, in_flight) = operations(count);
            let mut expected: Vec<_> = in_flight.iter().map(InFlight::id).collect();
            let mut parked = Parked::new();
            in_flight.into_iter().for_each(|operation| parked.push(operation));
            for index in [count - 1, count / 2, 0] {
                if index < expected.len() {
                    let id = expected.remove(index);
                    drop(parked.remove(id).expect("it is in the list"));
                    assert!(parked.remove(id).is_none(), "it was removed");
                }
            }
            if let Some(first) = parked.pop() {
                assert_eq!(first.id(), expected[0]);
                parked.put_back(first);
            }
            assert_eq!(ids(&mut parked), expected);
            assert!(parked.is_empty());
        }
    }

    #[test]
    fn a_long_list_that_was_emptied_is_used_again() {
        let mut parked = Parked::new();
        for count in [2 * LINEAR_SEARCH, 2, LINEAR_SEARCH, 2 * LINEAR_SEARCH, 1] {
            let (_operations, in_flight) = operations(count);
            let expected: Vec<_> = in_flight.iter().map(InFlight::id).collect();
            in_flight.into_iter().rev().for_each(|operation| parked.put_back(operation));
            let last = expected[count - 1];
            let taken = parked.remove(last).expect("it is in the list");
            parked.push(taken);
            assert_eq!(ids(&mut parked), expected);
        }
    }

    #[test]
    fn an_id_of_an_operation_that_is_gone_finds_nothing() {
        for count in [0, 1, 2 * LINEAR_SEARCH] {
            let gone = {
                let (_operations, in_flight) = operations(1);
                in_flight[0].id()
            };
            let (_operations, in_flight) = operations(count);
            // The allocator may reuse the address for a new operation.
            let is_reused = in_flight.iter().any(|operation| operation.id() == gone);
            let mut parked = Parked::new();
            in_flight.into_iter().for_each(|operation| parked.push(operation));
            assert_eq!(parked.remove(gone).is_some(), is_reused);
        }
    }

    #[test]
    fn parking_and_cancelling_many_takes_a_few_steps_each() {
        const MANY: usize = if cfg!(miri) { 200 } else { 20_000 };
        let (_operations, in_flight) = operations(MANY);
        let mut ids: Vec<_> = in_flight.iter().map(InFlight::id).collect();
        let mut parked = Parked::new();
        let parking = count_steps(|| in_flight.into_iter().for_each(|operation| parked.push(operation)));
        assert!(parking <= 2 * MANY, "{parking} steps to park {MANY}");
        // From the back, the middle and the front.
        ids.reverse();
        let (some, rest) = ids.split_at(MANY / 2);
        let cancelling = count_steps(|| {
            for id in rest.iter().chain(some) {
                assert!(parked.remove(*id).is_some());
            }
        });
        assert!(cancelling <= 2 * MANY, "{cancelling} steps to cancel {MANY}");
        assert!(parked.is_empty());
    }
}
