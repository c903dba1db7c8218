//! The frames that a thread caches: for each class a magazine in use and one in reserve. With a reserve, a
//! thread at the border between a full and an empty magazine does not go to the depot each time.
//!
//! 1. A rack holds magazines of its class only.
//! 2. `floor <= top <= ceiling`, all in the slots of the magazine in use, or all null. The slots from `floor`
//!    to `top` hold frames.
//!
//! The thread-locals are `std`'s also in a model: they only lead to memory.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::cell::Cell;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::thread_local;

use super::classes::{CLASSES, Class};
use super::depot;
use super::magazine::{Magazine, Slot};
use crate::frames::system;

/// The environment variable that turns the cache off if it is `0`.
const SWITCH: &str = "CONVOKE_FRAME_CACHE";

thread_local! {
    /// Has no destructor: so it can be accessed as long as the thread lives, and without a check whether it
    /// still exists.
    static CACHE: Cache = const { Cache::new() };
    /// Closes the cache in its destructor. Accessed when the first frame is cached.
    static AT_EXIT: CloseAtExit = const { CloseAtExit };
}

struct Cache {
    racks: [Rack; CLASSES],
    stage: Cell<Stage>,
}

/// The stage of a cache. Frames are cached only while it is open.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    New,
    Open,
    /// The thread ends: frames that are freed from now on go to the system.
    Closed,
}

/// The frames of one class that a thread caches: rule 2. If there is no magazine, all three pointers are
/// null: then both `pop` and `push` fail, and the slow path is taken.
struct Rack {
    top: Cell<*mut Slot>,
    floor: Cell<*mut Slot>,
    ceiling: Cell<*mut Slot>,
    /// Full or empty. Not dropped with the thread: `Cache::close` empties it before.
    reserve: Cell<Option<ManuallyDrop<Magazine>>>,
}

const _: () = assert!(!core::mem::needs_drop::<Cache>());

/// Takes a frame of this class; `layout` belongs to it.
#[inline]
pub(super) fn take(class: Class, layout: Layout) -> Option<NonNull<u8>> {
    CACHE.with(|cache| match cache.rack(class).pop() {
        Some(frame) => Some(frame),
        None => cache.take_slowly(class, layout),
    })
}

/// Puts a frame of this class back.
///
/// # Safety
/// It came from [`take`] with this class and layout, and is not used any more.
#[inline]
pub(super) unsafe fn put(class: Class, frame: NonNull<u8>, layout: Layout) {
    CACHE.with(|cache| {
        if !cache.rack(class).push(frame) {
            // SAFETY: the frame came from `take` with this class and layout, as `Recycling::deallocate` says.
            unsafe { cache.put_slowly(class, frame, layout) };
        }
    });
}

/// Returns true if frames are cached at all. The answer is the same for the whole life of the process:
/// without the cache, frames have exactly the size that was asked for, and must not be taken for frames of a
/// class.
fn is_on() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| std::env::var_os(SWITCH).is_none_or(|value| value != "0"))
}

impl Cache {
    const fn new() -> Self {
        Self { racks: [const { Rack::new() }; CLASSES], stage: Cell::new(Stage::New) }
    }

    #[inline]
    fn rack(&self, class: Class) -> &Rack {
        // SAFETY: the number of a class is less than `CLASSES`, the length of `racks`.
        unsafe { self.racks.get_unchecked(class.number()) }
    }

    /// Takes a frame when the magazine in use is empty.
    #[cold]
    #[inline(never)]
    fn take_slowly(&self, class: Class, layout: Layout) -> Option<NonNull<u8>> {
        if !is_on() {
            return system::allocate(layout);
        }
        let rack = self.rack(class);
        if self.is_open() && rack.refill(class) {
            return rack.pop();
        }
        system::allocate(class.layout())
    }

    /// Puts a frame back when the magazine in use is full.
    ///
    /// # Safety
    /// As [`put`].
    #[cold]
    #[inline(never)]
    unsafe fn put_slowly(&self, class: Class, frame: NonNull<u8>, layout: Layout) {
        let rack = self.rack(class);
        if is_on() && self.is_open() && rack.load_empty(class) && rack.push(frame) {
            return;
        }
        let layout = if is_on() { class.layout() } else { layout };
        // SAFETY: `take_slowly` has chosen the layout by the same condition, and got the frame from the system.
        unsafe { system::deallocate(frame, layout) };
    }

    /// Opens the cache if it is new, and makes sure that it is closed when the thread ends. Returns true if
    /// it is open.
    fn is_open(&self) -> bool {
        if self.stage.get() == Stage::New {
            let will_close = AT_EXIT.try_with(|_| ()).is_ok();
            self.stage.set(if will_close { Stage::Open } else { Stage::Closed });
        }
        self.stage.get() == Stage::Open
    }

    /// Closes the cache: moves all its frames to the depot.
    fn close(&self) {
        self.stage.set(Stage::Closed);
        for class in Class::all() {
            let rack = self.rack(class);
            for magazine in [rack.unload(class), rack.take_reserve()].into_iter().flatten() {
                let left = if magazine.is_empty() { Some(magazine) } else { depot::give_filled(magazine) };
                if let Some(empty) = left {
                    depot::give_empty(empty);
                }
            }
        }
    }
}

/// Closes the cache of the thread when it is dropped.
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
        // SAFETY: rule 2: `top` is above `floor`, so the slot below it exists and holds a frame.
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
        // SAFETY: rule 2: `top` is below `ceiling`, so the slot exists.
        unsafe {
            top.write(frame);
            self.top.set(top.add(1));
        }
        true
    }

    /// Loads a magazine with frames, from the reserve or the depot. Returns false if there is none. The
    /// magazine in use is empty, or there is none.
    fn refill(&self, class: Class) -> bool {
        let filled = match self.take_reserve() {
            Some(filled) if !filled.is_empty() => filled,
            empty => match depot::take_filled(class, empty) {
                Ok(filled) => filled,
                Err(empty) => {
                    self.set_reserve(empty);
                    return false;
                }
            },
        };
        self.set_reserve(self.unload(class));
        self.load(class, filled);
        true
    }

    /// Loads an empty magazine. Returns false if there is no memory for one. The magazine in use is full, or
    /// there is none.
    fn load_empty(&self, class: Class) -> bool {
        let empty = match self.take_reserve() {
            Some(filled) if !filled.is_empty() => depot::give_filled(filled).or_else(|| Magazine::new(class)),
            Some(empty) => Some(empty),
            None => depot::take_empty(class),
        };
        let Some(empty) = empty else { return false };
        self.set_reserve(self.unload(class));
        self.load(class, empty);
        true
    }

    fn take_reserve(&self) -> Option<Magazine> {
        self.reserve.take().map(ManuallyDrop::into_inner)
    }

    fn set_reserve(&self, magazine: Option<Magazine>) {
        self.reserve.set(magazine.map(ManuallyDrop::new));
    }

    fn load(&self, class: Class, magazine: Magazine) {
        let (slots, len) = magazine.into_parts();
        let floor = slots.as_ptr();
        self.floor.set(floor);
        // SAFETY: rule 1: the magazine is of this class, so it has `class.magazine()` slots, and `len` is not
        // larger.
        unsafe {
            self.top.set(floor.add(len));
            self.ceiling.set(floor.add(class.magazine()));
        }
    }

    fn unload(&self, class: Class) -> Option<Magazine> {
        let slots = NonNull::new(self.floor.replace(ptr::null_mut()))?;
        self.ceiling.set(ptr::null_mut());
        // SAFETY: rule 2: both pointers are in the slots of one magazine, `top` is not below `floor`, and the
        // slots in between hold frames. Rule 1: it is of this class. It is put together once: `floor` is null
        // by now.
        unsafe {
            let len = self.top.replace(ptr::null_mut()).offset_from_unsigned(slots.as_ptr());
            Some(Magazine::from_parts(class, slots, len))
        }
    }
}
