//! The freed frames that a thread keeps for itself: for each class a magazine that it works with, and one in reserve,
//! so that a thread on the edge between a full and an empty one does not go to the depot each time.
//!
//! The thread-locals are `std`'s also in a model: they only lead to memory.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::thread_local;

use super::classes::{CLASSES, Class};
use super::depot;
use super::magazine::{Magazine, Slot};
use crate::frames::system;

/// The name of the variable that turns the keeping of frames off, if it is `0`.
const SWITCH: &str = "CONVOKE_FRAME_CACHE";

thread_local! {
    /// Without a destructor: it can be asked as long as the thread lives, and without a question whether it is there.
    static CACHE: Cache = const { Cache::new() };
    /// Its destructor, touched when the first frame is kept.
    static AT_EXIT: CloseAtExit = const { CloseAtExit };
}

struct Cache {
    racks: [Rack; CLASSES],
    state: Cell<State>,
}

/// Frames are kept only in a cache that is open.
#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    Open,
    /// The thread ends: what is freed from now on goes to the system.
    Closed,
}

/// What a thread has of one class. The magazine in use is a stack between two borders; without one, all three are
/// null: then there is neither a frame to take nor room to put one, and the slow path is asked.
struct Rack {
    top: Cell<*mut Slot>,
    floor: Cell<*mut Slot>,
    ceiling: Cell<*mut Slot>,
    /// Full or empty.
    reserve: Cell<Option<Magazine>>,
}

/// A frame of this class; `layout` is one of it.
#[inline]
pub(super) fn take(class: Class, layout: Layout) -> Option<NonNull<u8>> {
    CACHE.with(|cache| {
        // SAFETY: the number of a class is less than `CLASSES`.
        let rack = unsafe { cache.racks.get_unchecked(class.number()) };
        match rack.pop() {
            Some(frame) => Some(frame),
            None => cache.take_slowly(class, layout),
        }
    })
}

/// Puts a frame of this class back.
///
/// # Safety
/// It came from [`take`] with this class and layout, and is not used any more.
#[inline]
pub(super) unsafe fn put(class: Class, frame: NonNull<u8>, layout: Layout) {
    CACHE.with(|cache| {
        // SAFETY: the number of a class is less than `CLASSES`.
        let rack = unsafe { cache.racks.get_unchecked(class.number()) };
        if !rack.push(frame) {
            // SAFETY: the caller's.
            unsafe { cache.put_slowly(class, frame, layout) };
        }
    });
}

/// Whether frames are kept at all. One answer for the whole life of the process: without keeping, frames have the
/// exact size that was asked for, and nobody may take them for others.
fn keeps() -> bool {
    static KEEPS: OnceLock<bool> = OnceLock::new();
    *KEEPS.get_or_init(|| std::env::var_os(SWITCH).is_none_or(|value| value != "0"))
}

impl Cache {
    const fn new() -> Self {
        Self { racks: [const { Rack::new() }; CLASSES], state: Cell::new(State::New) }
    }

    /// The magazine in use is empty.
    #[cold]
    #[inline(never)]
    fn take_slowly(&self, class: Class, layout: Layout) -> Option<NonNull<u8>> {
        if !keeps() {
            return system::allocate(layout);
        }
        let rack = &self.racks[class.number()];
        if self.is_open() && rack.refill(class) {
            return rack.pop();
        }
        system::allocate(class.layout())
    }

    /// The magazine in use is full.
    ///
    /// # Safety
    /// As [`put`].
    #[cold]
    #[inline(never)]
    unsafe fn put_slowly(&self, class: Class, frame: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's; `take_slowly` chose the layout by the same question.
        unsafe {
            if !keeps() {
                return system::deallocate(frame, layout);
            }
            let rack = &self.racks[class.number()];
            if !(self.is_open() && rack.make_room(class) && rack.push(frame)) {
                system::deallocate(frame, class.layout());
            }
        }
    }

    /// Opens the cache if it is new, and sees to it that it is closed when the thread ends.
    fn is_open(&self) -> bool {
        if self.state.get() == State::New {
            let will_close = AT_EXIT.try_with(|_| ()).is_ok();
            self.state.set(if will_close { State::Open } else { State::Closed });
        }
        self.state.get() == State::Open
    }

    /// Gives all to the depot.
    fn close(&self) {
        self.state.set(State::Closed);
        for class in Class::all() {
            let rack = &self.racks[class.number()];
            for magazine in [rack.unload(), rack.reserve.take()].into_iter().flatten() {
                // SAFETY: a rack holds magazines of its class.
                unsafe {
                    let left =
                        if magazine.len > 0 { depot::give_filled(class, magazine) } else { Some(magazine) };
                    if let Some(empty) = left {
                        depot::give_empty(class, empty);
                    }
                }
            }
        }
    }
}

/// Closes the thread's cache.
struct CloseAtExit;

impl Drop for CloseAtExit {
    fn drop(&mut self) {
        CACHE.with(Cache::close);
    }
}

impl Rack {
    const fn new() -> Self {
        Self {
            top: Cell::new(ptr::null_mut()),
            floor: Cell::new(ptr::null_mut()),
            ceiling: Cell::new(ptr::null_mut()),
            reserve: Cell::new(None),
        }
    }

    #[inline]
    fn pop(&self) -> Option<NonNull<u8>> {
        let top = self.top.get();
        if top == self.floor.get() {
            return None;
        }
        // SAFETY: the top is above the floor, in the magazine's slots, and all below it were written.
        unsafe {
            let top = top.sub(1);
            self.top.set(top);
            Some(top.read())
        }
    }

    #[inline]
    fn push(&self, frame: NonNull<u8>) -> bool {
        let top = self.top.get();
        if top == self.ceiling.get() {
            return false;
        }
        // SAFETY: the top is below the ceiling, in the magazine's slots.
        unsafe {
            top.write(frame);
            self.top.set(top.add(1));
        }
        true
    }

    /// Loads a magazine with frames, from the reserve or from the depot; false if there is none. The one in use is
    /// empty, or there is none.
    fn refill(&self, class: Class) -> bool {
        let filled = match self.reserve.take() {
            Some(filled) if filled.len > 0 => filled,
            // SAFETY: a rack holds magazines of its class, and this one is empty.
            empty => match unsafe { depot::take_filled(class, empty) } {
                Ok(filled) => filled,
                Err(empty) => {
                    self.reserve.set(empty);
                    return false;
                }
            },
        };
        self.reserve.set(self.unload());
        self.load(class, filled);
        true
    }

    /// Loads a magazine that is empty; false if there is no memory for one. The one in use is full, or there is none.
    fn make_room(&self, class: Class) -> bool {
        let empty = match self.reserve.take() {
            Some(filled) if filled.len > 0 => {
                // SAFETY: a rack holds magazines of its class.
                unsafe { depot::give_filled(class, filled) }.or_else(|| Magazine::new(class))
            }
            Some(empty) => Some(empty),
            None => depot::take_empty(class),
        };
        let Some(empty) = empty else { return false };
        self.reserve.set(self.unload());
        self.load(class, empty);
        true
    }

    fn load(&self, class: Class, magazine: Magazine) {
        let floor = magazine.slots.as_ptr();
        self.floor.set(floor);
        // SAFETY: a magazine has so many slots, and no more frames than slots.
        unsafe {
            self.top.set(floor.add(magazine.len));
            self.ceiling.set(floor.add(class.magazine()));
        }
    }

    fn unload(&self) -> Option<Magazine> {
        let slots = NonNull::new(self.floor.replace(ptr::null_mut()))?;
        self.ceiling.set(ptr::null_mut());
        // SAFETY: both are in the slots of one magazine, the top not below the floor.
        let len = unsafe { self.top.replace(ptr::null_mut()).offset_from_unsigned(slots.as_ptr()) };
        Some(Magazine { slots, len })
    }
}
