//! Operations that wait in a driver, in order, linked through themselves: parking one allocates nothing until there are many.
//!
//! An [`OperationId`] is an address that anybody may keep, also when its operation is long gone. So it is compared, and never
//! followed: a short list is walked to find it, and a long one has an index.

#![allow(unsafe_code)]

use core::fmt;
use core::ptr::{self, NonNull};
use std::collections::HashMap;

use super::{InFlight, IoOperation, OperationId};
use convoke_core::raw::visit_step;

/// The longest list without an index: to walk it is cheaper than to keep one.
const WALKED: usize = 16;

/// The operation before each one in the list, by its id; null for the first.
type Index = HashMap<OperationId, *mut IoOperation>;

/// A list of operations that wait. For readiness drivers there is one for each direction of a source. Dropping it finishes all
/// of them with an error.
///
/// 1. The operations in the list belong to it, and so do their links: rule 2 of the operation. Each is pinned until it leaves.
/// 2. `last` is the operation whose link is null, and is null itself if and only if `first` is.
/// 3. The index has an entry for each operation of the list, or none at all. It is filled when the list becomes longer than
///    `WALKED`, and empty again when the list is; its memory stays for the next time.
pub struct Parked {
    first: *mut IoOperation,
    last: *mut IoOperation,
    length: usize,
    index: Option<Box<Index>>,
}

// SAFETY: rule 1: it owns what is in it, and that is `Send`.
unsafe impl Send for Parked {}
// SAFETY: by shared reference it can only be asked whether it is empty.
unsafe impl Sync for Parked {}

impl Parked {
    /// An empty list.
    pub const fn new() -> Self {
        Self { first: ptr::null_mut(), last: ptr::null_mut(), length: 0, index: None }
    }

    /// Whether nobody waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Adds one behind all others.
    pub fn push(&mut self, operation: InFlight) {
        let operation = operation.into_raw();
        let before = self.last;
        // SAFETY: rule 1: `operation` was handed over just now, and `last` is in the list.
        unsafe {
            *operation.as_ref().next.get() = ptr::null_mut();
            self.link(before, operation.as_ptr());
        }
        self.last = operation.as_ptr();
        self.has_grown(operation, before);
    }

    /// Takes the first.
    #[inline]
    pub fn pop(&mut self) -> Option<InFlight> {
        let first = NonNull::new(self.first)?;
        // SAFETY: it is the first, and none is before it.
        Some(unsafe { self.take_out(first, ptr::null_mut()) })
    }

    /// Puts one back in front of all others.
    pub fn put_back(&mut self, operation: InFlight) {
        let operation = operation.into_raw();
        let after = self.first;
        // SAFETY: rule 1: `operation` was handed over just now.
        unsafe { *operation.as_ref().next.get() = after };
        self.first = operation.as_ptr();
        self.note_before(after, operation.as_ptr());
        if after.is_null() {
            self.last = operation.as_ptr();
        }
        self.has_grown(operation, ptr::null_mut());
    }

    /// Takes this one, if it is there.
    pub fn remove(&mut self, id: OperationId) -> Option<InFlight> {
        let (found, before) = match self.known_index() {
            Some(index) => self.follow(*index.get(&id)?)?,
            None => self.walk_to(id)?,
        };
        // SAFETY: both have just been found in the list, one behind the other.
        Some(unsafe { self.take_out(found, before) })
    }

    /// The index, if it has entries: rule 3.
    fn known_index(&self) -> Option<&Index> {
        self.index.as_deref().filter(|index| !index.is_empty())
    }

    /// The operation behind `before`, which is in the list or null, and `before` itself.
    fn follow(&self, before: *mut IoOperation) -> Option<(NonNull<IoOperation>, *mut IoOperation)> {
        visit_step();
        let found = match NonNull::new(before) {
            // SAFETY: rule 1: it is in the list, and its link is the list's.
            Some(there) => unsafe { *there.as_ref().next.get() },
            None => self.first,
        };
        NonNull::new(found).map(|found| (found, before))
    }

    /// The operation with this id and the one before it, found from the front.
    fn walk_to(&self, id: OperationId) -> Option<(NonNull<IoOperation>, *mut IoOperation)> {
        let mut before = ptr::null_mut();
        while let Some((there, _)) = self.follow(before) {
            if OperationId::of(there) == id {
                return Some((there, before));
            }
            before = there.as_ptr();
        }
        None
    }

    /// Takes `found` out of the list and of the index. The obligation goes to whoever calls this.
    ///
    /// # Safety
    /// `found` is in the list, and `before` is the one before it, or null if it is the first.
    #[inline]
    unsafe fn take_out(&mut self, found: NonNull<IoOperation>, before: *mut IoOperation) -> InFlight {
        // SAFETY: rule 1: both are in the list, as the caller says, and so are their links.
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
            self.note_before(after, before);
            InFlight::new(found)
        }
    }

    /// Makes `after` the one that follows `before`, or the first if that is null.
    ///
    /// # Safety
    /// `before` is in the list, or null.
    #[inline]
    unsafe fn link(&mut self, before: *mut IoOperation, after: *mut IoOperation) {
        match NonNull::new(before) {
            // SAFETY: rule 1: it is in the list, as the caller says.
            Some(before) => unsafe { *before.as_ref().next.get() = after },
            None => self.first = after,
        }
    }

    /// Notes in the index, if that has entries, that `before` is in front of `after`, if there is one.
    #[inline]
    fn note_before(&mut self, after: *mut IoOperation, before: *mut IoOperation) {
        if let (Some(index), Some(after)) = (&mut self.index, NonNull::new(after))
            && let Some(noted) = index.get_mut(&OperationId::of(after))
        {
            *noted = before;
        }
    }

    /// `operation` was put behind `before`, or in front of all: counts it, and keeps rule 3.
    fn has_grown(&mut self, operation: NonNull<IoOperation>, before: *mut IoOperation) {
        self.length += 1;
        if let Some(index) = self.index.as_deref_mut().filter(|index| !index.is_empty()) {
            index.insert(OperationId::of(operation), before);
        } else if self.length > WALKED {
            self.fill_index();
        }
    }

    #[cold]
    fn fill_index(&mut self) {
        let mut index = self.index.take().unwrap_or_default();
        let mut before = ptr::null_mut();
        while let Some((there, _)) = self.follow(before) {
            index.insert(OperationId::of(there), before);
            before = there.as_ptr();
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

    /// Operations in flight that nobody is told of. They stay where they are: no more are added.
    fn operations(count: usize) -> (Vec<IoOperation>, Vec<InFlight>) {
        let operations: Vec<_> = (0..count).map(|_| IoOperation::new()).collect();
        let begin = |operation: &IoOperation| {
            let request = Request::Connect(Box::new(Address::Unnamed));
            // SAFETY: it is idle and stays in its place until it was finished; the request has no buffer.
            unsafe { operation.begin(request) }
        };
        let in_flight = operations.iter().map(begin).collect();
        (operations, in_flight)
    }

    fn ids(parked: &mut Parked) -> Vec<OperationId> {
        core::iter::from_fn(|| parked.pop()).map(|operation| operation.id()).collect()
    }

    #[test]
    fn the_order_is_kept_when_some_are_taken_from_the_middle_and_put_back_in_front() {
        for count in [1, 2, WALKED, WALKED + 1, 3 * WALKED] {
            let (_operations, in_flight) = operations(count);
            let mut expected: Vec<_> = in_flight.iter().map(InFlight::id).collect();
            let mut parked = Parked::new();
            in_flight.into_iter().for_each(|operation| parked.push(operation));
            for place in [count - 1, count / 2, 0] {
                if place < expected.len() {
                    let id = expected.remove(place);
                    drop(parked.remove(id).expect("it is there"));
                    assert!(parked.remove(id).is_none(), "it is not there any more");
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
        for count in [2 * WALKED, 2, WALKED, 2 * WALKED, 1] {
            let (_operations, in_flight) = operations(count);
            let expected: Vec<_> = in_flight.iter().map(InFlight::id).collect();
            in_flight.into_iter().rev().for_each(|operation| parked.put_back(operation));
            let last = expected[count - 1];
            let taken = parked.remove(last).expect("it is there");
            parked.push(taken);
            assert_eq!(ids(&mut parked), expected);
        }
    }

    #[test]
    fn an_id_of_an_operation_that_is_gone_finds_nothing() {
        for count in [0, 1, 2 * WALKED] {
            let gone = {
                let (_operations, in_flight) = operations(1);
                in_flight[0].id()
            };
            let (_operations, in_flight) = operations(count);
            // The allocator may have given the same address to a new one.
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
        // From the back, from the middle, from the front: wherever they are.
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
