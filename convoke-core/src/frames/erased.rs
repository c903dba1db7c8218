//! An allocator of any type behind a pointer of one word: the table of its functions lies in front of it.
//!
//! 1. A head is the first field of a `Stored<A>` in an `Arc`, with the table of `A`; or it is `SYSTEM`.
//! 2. The functions below require that the caller has a count of the head.
//!
//! An allocator may panic: the contract of `Allocator` does not forbid it. Code that allocates or frees a
//! frame must not be unwound. So panics are caught here, after the panic hook has reported them. A panic in
//! `allocate` counts as no memory left; one in `deallocate`, or in the destructor of the allocator, is
//! ignored.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::any::type_name;
use core::ptr::NonNull;
use std::sync::Arc;

use allocator_api2::alloc::Allocator;

use super::system;
use crate::Panic;

/// The target of a handle: rule 1.
pub(super) struct Head {
    table: &'static Table,
}

struct Table {
    allocate: unsafe fn(NonNull<Head>, Layout) -> Option<NonNull<u8>>,
    deallocate: unsafe fn(NonNull<Head>, NonNull<u8>, Layout),
    retain: unsafe fn(NonNull<Head>),
    release: unsafe fn(NonNull<Head>),
    name: fn() -> &'static str,
}

/// An allocator and its table, in an `Arc`. The head comes first, so that its address is that of the whole.
#[repr(C)]
struct Stored<A> {
    head: Head,
    allocator: A,
}

/// The head of the global allocator. A `static`, which needs no count.
static SYSTEM: Head = Head {
    table: &Table {
        allocate: |_, layout| system::allocate(layout),
        // SAFETY: memory of this head came from `system::allocate` with this layout, by the contract of
        // `deallocate`.
        deallocate: |_, memory, layout| unsafe { system::deallocate(memory, layout) },
        retain: |_| (),
        release: |_| (),
        name: || "system",
    },
};

/// Returns the head of the global allocator.
pub(super) const fn system() -> NonNull<Head> {
    NonNull::from_ref(&SYSTEM)
}

/// Erases the type of `allocator`. The caller gets one count of it.
pub(super) fn store<A: Allocator + Send + Sync + 'static>(allocator: A) -> NonNull<Head> {
    let stored = Arc::new(Stored { head: Head { table: Stored::<A>::TABLE }, allocator });
    // SAFETY: `Arc::into_raw` never returns null.
    unsafe { NonNull::new_unchecked(Arc::into_raw(stored).cast_mut()).cast() }
}

impl<A: Allocator + Send + Sync + 'static> Stored<A> {
    const TABLE: &'static Table = &Table {
        allocate: |head, layout| {
            // SAFETY: rule 1: this table is only in a `Stored<A>`. Rule 2: the caller has a count of it.
            let stored = unsafe { head.cast::<Self>().as_ref() };
            Some(Panic::catch(|| stored.allocator.allocate(layout)).ok()?.ok()?.cast())
        },
        deallocate: |head, memory, layout| {
            // SAFETY: rule 1: this table is only in a `Stored<A>`. Rule 2: the caller has a count of it.
            let stored = unsafe { head.cast::<Self>().as_ref() };
            // SAFETY: the memory came from this allocator with this layout: the contract of `deallocate`.
            drop(Panic::catch(|| unsafe { stored.allocator.deallocate(memory, layout) }));
        },
        // SAFETY: rule 1: the pointer came from `Arc::into_raw` of a `Stored<A>`. Rule 2: the caller has a
        // count of it.
        retain: |head| unsafe { Arc::increment_strong_count(head.cast::<Self>().as_ptr()) },
        release: |head| {
            // SAFETY: rule 1: the pointer came from `Arc::into_raw` of a `Stored<A>`. The caller gives up the
            // count it has.
            drop(Panic::catch(|| unsafe { Arc::decrement_strong_count(head.cast::<Self>().as_ptr()) }));
        },
        name: type_name::<A>,
    };
}

/// Allocates memory, or returns `None` if there is none left.
///
/// # Safety
/// Rule 2.
pub(super) unsafe fn allocate(head: NonNull<Head>, layout: Layout) -> Option<NonNull<u8>> {
    // SAFETY: rule 2: the count keeps the head alive. Rule 1: its table fits it.
    unsafe { (head.as_ref().table.allocate)(head, layout) }
}

/// Frees memory.
///
/// # Safety
/// Rule 2; and `memory` came from `allocate` of this head with this layout, and is not used any more.
pub(super) unsafe fn deallocate(head: NonNull<Head>, memory: NonNull<u8>, layout: Layout) {
    // SAFETY: rule 2: the count keeps the head alive. Rule 1: its table fits it.
    unsafe { (head.as_ref().table.deallocate)(head, memory, layout) }
}

/// Adds a count.
///
/// # Safety
/// Rule 2.
pub(super) unsafe fn retain(head: NonNull<Head>) {
    // SAFETY: rule 2: the count keeps the head alive. Rule 1: its table fits it.
    unsafe { (head.as_ref().table.retain)(head) }
}

/// Gives up a count.
///
/// # Safety
/// Rule 2; and the caller does not use that count again.
pub(super) unsafe fn release(head: NonNull<Head>) {
    // SAFETY: rule 2: the count keeps the head alive. Rule 1: its table fits it.
    unsafe { (head.as_ref().table.release)(head) }
}

/// Returns the name of the allocator, for `Debug`.
///
/// # Safety
/// Rule 2.
pub(super) unsafe fn name(head: NonNull<Head>) -> &'static str {
    // SAFETY: rule 2: the count keeps the head alive. Rule 1: its table fits it.
    unsafe { (head.as_ref().table.name)() }
}
