//! `Parked`: operations that wait in a driver, in order. The list is linked through the operations, so
//! parking allocates nothing until the list is long.
//!
//! An [`OperationId`] is an address that may outlive its operation. So it is compared, never dereferenced: a
//! short list is searched, and a long one has an index. It is not `IntrusiveList`, because that removes a node that is known to
//! exist, and needs two words of every operation.

#![allow(unsafe_code)]

use core::fmt;
use core::ptr::NonNull;
use std::collections::HashMap;

use super::{InFlight, IoOperation, OperationId};
use convoke_core::raw::visit_step;

/// The length of the longest list without an index: searching it is cheaper than maintaining one.
const LINEAR_SEARCH: usize = 16;

/// Maps each operation in the list to its predecessor; the first has none.
type Index = HashMap<OperationId, Option<Member>>;

/// A list of waiting operations. A readiness driver has one for each direction of a source. Dropping the list
/// finishes all of them with an error.
///
/// 1. The list holds the `InFlight`s of its operations, and so owns their `next` fields (rule 2 of
///    `IoOperation`). Each operation stays pinned until it is removed (rule 4 there).
/// 2. `last` is the operation that has no `next`. It is `None` if and only if `first` is.
/// 3. The index has an entry for each operation of the list, or none at all. It is filled when the list
///    becomes longer than `LINEAR_SEARCH`, and empties with the list; its memory is kept for later.
pub struct Parked {
    first: Option<Member>,
    last: Option<Member>,
    length: usize,
    index: Option<Box<Index>>,
}

/// An operation whose `InFlight` the list holds: rule 1. It is used only while that is so.
#[derive(Clone, Copy)]
struct Member(NonNull<IoOperation>);

impl Member {
    #[inline]
    fn id(self) -> OperationId {
        OperationId::of(self.0)
    }

    #[inline]
    fn operation(&self) -> &IoOperation {
        // SAFETY: rule 1: the list holds its `InFlight`, and a submitted operation exists and stays in place
        // (rule 4 of `IoOperation`).
        unsafe { self.0.as_ref() }
    }

    #[inline]
    fn next(self) -> Option<Self> {
        self.operation().next.get().map(Self)
    }

    #[inline]
    fn set_next(self, next: Option<Self>) {
        self.operation().next.set(next.map(|next| next.0));
    }
}

// SAFETY: rule 1: it owns its operations like `InFlight`s, which are `Send`.
unsafe impl Send for Parked {}
// SAFETY: a shared reference gives only `is_empty`, which reads no operation.
unsafe impl Sync for Parked {}

impl Parked {
    /// Creates an empty list.
    pub const fn new() -> Self {
        Self { first: None, last: None, length: 0, index: None }
    }

    /// Returns true if no operation waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Adds an operation at the end.
    pub fn push(&mut self, operation: InFlight) {
        let added = Member(operation.into_raw());
        let before = self.last.replace(added);
        added.set_next(None);
        self.link(before, Some(added));
        self.count_linked(added, before);
    }

    /// Takes the first operation.
    #[inline]
    pub fn pop(&mut self) -> Option<InFlight> {
        let first = self.first?;
        Some(self.unlink(first, None))
    }

    /// Puts an operation back at the front.
    pub fn put_back(&mut self, operation: InFlight) {
        let added = Member(operation.into_raw());
        let after = self.first.replace(added);
        added.set_next(after);
        match after {
            Some(after) => self.set_predecessor(after, Some(added)),
            None => self.last = Some(added),
        }
        self.count_linked(added, None);
    }

    /// Removes the operation with this id, if it is in the list.
    pub fn remove(&mut self, id: OperationId) -> Option<InFlight> {
        let (found, before) = match self.filled_index() {
            Some(index) => {
                let before = *index.get(&id)?;
                (self.behind(before)?, before)
            }
            None => self.walk_to(id)?,
        };
        Some(self.unlink(found, before))
    }

    /// Returns the index if it has entries (rule 3).
    fn filled_index(&self) -> Option<&Index> {
        self.index.as_deref().filter(|index| !index.is_empty())
    }

    /// Returns the index for changes if it has entries (rule 3).
    fn filled_index_mut(&mut self) -> Option<&mut Index> {
        self.index.as_deref_mut().filter(|index| !index.is_empty())
    }

    /// Returns the operation behind `before`, or the first one.
    fn behind(&self, before: Option<Member>) -> Option<Member> {
        visit_step();
        before.map_or(self.first, Member::next)
    }

    /// Searches the list from the front for this id. Returns the operation and its predecessor.
    fn walk_to(&self, id: OperationId) -> Option<(Member, Option<Member>)> {
        let mut before = None;
        while let Some(current) = self.behind(before) {
            if current.id() == id {
                return Some((current, before));
            }
            before = Some(current);
        }
        None
    }

    /// Unlinks `found`, which is behind `before` or the first, and removes it from the index.
    #[inline]
    fn unlink(&mut self, found: Member, before: Option<Member>) -> InFlight {
        let after = found.next();
        self.link(before, after);
        self.length -= 1;
        if let Some(index) = self.filled_index_mut() {
            index.remove(&found.id());
        }
        match after {
            Some(after) => self.set_predecessor(after, before),
            None => self.last = before,
        }
        // SAFETY: rule 1: the list held the `InFlight` of a submitted operation, and gives it up: the
        // operation is not in the list any more.
        unsafe { InFlight::new(found.0) }
    }

    /// Makes `after` the successor of `before`, or the first.
    #[inline]
    fn link(&mut self, before: Option<Member>, after: Option<Member>) {
        match before {
            Some(before) => before.set_next(after),
            None => self.first = after,
        }
    }

    /// Records in the index, if it has entries, that `before` precedes `after`.
    #[inline]
    fn set_predecessor(&mut self, after: Member, before: Option<Member>) {
        if let Some(index) = &mut self.index
            && let Some(noted) = index.get_mut(&after.id())
        {
            *noted = before;
        }
    }

    /// Counts `added`, which was linked behind `before` or at the front, and keeps rule 3.
    fn count_linked(&mut self, added: Member, before: Option<Member>) {
        self.length += 1;
        if let Some(index) = self.filled_index_mut() {
            index.insert(added.id(), before);
        } else if self.length > LINEAR_SEARCH {
            self.fill_index();
        }
    }

    #[cold]
    fn fill_index(&mut self) {
        let mut index = self.index.take().unwrap_or_default();
        let mut before = None;
        while let Some(current) = self.behind(before) {
            index.insert(current.id(), before);
            before = Some(current);
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
        const MANY: usize = if cfg!(miri) { 60 } else { 20_000 };
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
