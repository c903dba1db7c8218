//! An allocator of any type behind a pointer that is one word wide: the table of what it can do lies in front of it.
//!
//! An allocator may panic, as its contract says nothing of that. Whoever asks for memory, or gives it back, is in the middle
//! of something that must not unwind: so a panic is caught here, after the panic hook has told of it. One in `allocate` counts
//! as no memory left; after one in `deallocate`, or in the destructor of the allocator, all goes on.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::any::type_name;
use core::ptr::NonNull;
use std::sync::Arc;

use allocator_api2::alloc::Allocator;

use super::system;
use crate::Panic;

/// What a handle points to: the first field of a [`Kept`], or of the one for the system.
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

/// An allocator and its table, in an `Arc`. The head comes first, so that a pointer to it is one to the whole.
#[repr(C)]
struct Kept<A> {
    head: Head,
    allocator: A,
}

/// Counted by nobody: it is always there.
static SYSTEM: Head = Head {
    table: &Table {
        allocate: |_, layout| system::allocate(layout),
        // SAFETY: the caller's; the head is this one, so the memory came from `system::allocate`.
        deallocate: |_, memory, layout| unsafe { system::deallocate(memory, layout) },
        retain: |_| (),
        release: |_| (),
        name: || "system",
    },
};

/// The system's allocator.
pub(super) const fn system() -> NonNull<Head> {
    NonNull::from_ref(&SYSTEM)
}

/// Erases `allocator`; the caller has one count of it.
pub(super) fn keep<A: Allocator + Send + Sync + 'static>(allocator: A) -> NonNull<Head> {
    let kept = Arc::new(Kept { head: Head { table: Kept::<A>::TABLE }, allocator });
    // SAFETY: an `Arc` is never null.
    unsafe { NonNull::new_unchecked(Arc::into_raw(kept).cast_mut()).cast() }
}

impl<A: Allocator + Send + Sync + 'static> Kept<A> {
    const TABLE: &'static Table = &Table {
        allocate: |head, layout| {
            // SAFETY: this table is only in heads made by `keep` for an `A`, and the caller has a count.
            let kept = unsafe { head.cast::<Self>().as_ref() };
            Some(Panic::catch(|| kept.allocator.allocate(layout)).ok()?.ok()?.cast())
        },
        deallocate: |head, memory, layout| {
            // SAFETY: as above; that the memory came from there with this layout is part of the contract of `deallocate`.
            let kept = unsafe { head.cast::<Self>().as_ref() };
            // SAFETY: as above.
            drop(Panic::catch(|| unsafe { kept.allocator.deallocate(memory, layout) }));
        },
        // SAFETY: as above; the pointer came from `Arc::into_raw`.
        retain: |head| unsafe { Arc::increment_strong_count(head.cast::<Self>().as_ptr()) },
        release: |head| {
            // SAFETY: as above; the pointer came from `Arc::into_raw`, and the caller gives its count up.
            drop(Panic::catch(|| unsafe { Arc::decrement_strong_count(head.cast::<Self>().as_ptr()) }));
        },
        name: type_name::<A>,
    };
}

/// # Safety
/// The caller of this and of the functions below has a count of `head`.
pub(super) unsafe fn allocate(head: NonNull<Head>, layout: Layout) -> Option<NonNull<u8>> {
    // SAFETY: the count keeps the head alive, and its table was made for it.
    unsafe { (head.as_ref().table.allocate)(head, layout) }
}

/// # Safety
/// As [`allocate`]; `memory` came from there with this layout and is not used any more.
pub(super) unsafe fn deallocate(head: NonNull<Head>, memory: NonNull<u8>, layout: Layout) {
    // SAFETY: as in `allocate`.
    unsafe { (head.as_ref().table.deallocate)(head, memory, layout) }
}

/// One count more.
///
/// # Safety
/// As [`allocate`].
pub(super) unsafe fn retain(head: NonNull<Head>) {
    // SAFETY: as in `allocate`.
    unsafe { (head.as_ref().table.retain)(head) }
}

/// One count less: the caller's.
///
/// # Safety
/// As [`allocate`].
pub(super) unsafe fn release(head: NonNull<Head>) {
    // SAFETY: as in `allocate`.
    unsafe { (head.as_ref().table.release)(head) }
}

/// What to call it in front of people.
///
/// # Safety
/// As [`allocate`].
pub(super) unsafe fn name(head: NonNull<Head>) -> &'static str {
    // SAFETY: as in `allocate`.
    unsafe { (head.as_ref().table.name)() }
}
