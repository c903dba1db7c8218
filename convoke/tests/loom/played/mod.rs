//! A task of which there is nothing but its state, played by the threads of a model.

#![allow(dead_code, unreachable_pub)]
#![allow(unsafe_code)]

use convoke_core::raw::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use convoke_core::raw::sync::{Arc, Mutex, UnsafeCell, thread};
use convoke_task::raw::task_state::{Access, Leave, Opened, State, Wake};

use super::model::Count;

/// A task of which there is nothing but its state, and what shows who is where.
pub struct Played {
    pub state: State,
    /// Who is inside writes it.
    pub inside: UnsafeCell<usize>,
    /// Who touches the task reads it, and who frees it writes it.
    pub memory: UnsafeCell<bool>,
    pub left: Left,
    /// Whether it has moved away from its home.
    pub moved: AtomicBool,
    /// Runnables that are queued, and letters that are on their way. At most one each.
    pub queued: Count,
    pub taken: AtomicUsize,
    pub letters: Mutex<usize>,
    pub ready: AtomicBool,
}

/// Whether the task's kind is one that is there for ever: rule 6 of the header. Who sends a letter reads it, for the place, and so
/// does who frees the task.
pub struct Left(UnsafeCell<bool>);

// SAFETY: the model checks it.
unsafe impl Sync for Left {}
// SAFETY: as above.
unsafe impl Send for Left {}

impl Left {
    pub fn new() -> Self {
        Self(UnsafeCell::new(false))
    }

    pub fn set(&self) {
        // SAFETY: a write; the model sees if it is not alone.
        self.0.with_mut(|left| unsafe { *left = true });
    }

    pub fn get(&self) -> bool {
        // SAFETY: a read; the model sees if somebody writes.
        self.0.with(|left| unsafe { *left })
    }

    pub fn assert(&self) {
        assert!(self.get(), "it leads to a place that is gone");
    }
}

// SAFETY: the model checks it.
unsafe impl Sync for Played {}
// SAFETY: as above.
unsafe impl Send for Played {}

impl Played {
    pub fn queued(references: u32) -> Arc<Self> {
        Arc::new(Self {
            state: State::queued(references),
            inside: UnsafeCell::new(0),
            memory: UnsafeCell::new(false),
            left: Left::new(),
            moved: AtomicBool::new(false),
            queued: Count::default(),
            taken: AtomicUsize::new(0),
            letters: Mutex::new(0),
            ready: AtomicBool::new(false),
        })
    }

    /// The state, of a task that is there.
    pub fn state(&self) -> &State {
        // SAFETY: a read; the model sees if somebody writes.
        self.memory.with(|freed| assert!(!unsafe { *freed }, "touched after it was freed"));
        &self.state
    }

    pub fn free(&self) {
        // SAFETY: a write; the model sees if it is not alone.
        self.memory.with_mut(|freed| unsafe {
            assert!(!*freed, "freed twice");
            *freed = true;
        });
    }

    pub fn is_free(&self) -> bool {
        // SAFETY: a read; the model sees if somebody writes.
        self.memory.with(|freed| unsafe { *freed })
    }

    /// Is inside for a moment.
    pub fn work(&self) {
        // SAFETY: a write; the model sees if it is not alone.
        self.inside.with_mut(|runs| unsafe { *runs += 1 });
    }

    pub fn act(&self, wake: Wake) -> Wake {
        match wake {
            Wake::Nothing => {}
            Wake::Post => _ = self.queued.add(),
            Wake::Send => {
                assert!(!self.left.get(), "its place is looked at");
                *self.letters.lock().unwrap() += 1;
            }
        }
        wake
    }

    /// The same for a parent, which knows the place.
    pub fn act_in_place(&self, wake: Wake) {
        if wake == Wake::Send {
            *self.letters.lock().unwrap() += 1;
        } else {
            let _ = self.act(wake);
        }
    }

    pub fn wake(&self, access: Access) -> Wake {
        self.act(self.state().wake(from))
    }

    pub fn drop_reference(&self, access: Access) -> bool {
        let last = self.state().drop_reference(from);
        if last {
            self.left.assert();
            self.free();
        }
        last
    }

    /// It has left, and gives up its own reference.
    pub fn leave_to_others(&self, access: Access) -> bool {
        self.left.set();
        self.drop_reference(from)
    }

    pub fn letter_has_come(&self) -> bool {
        let mut letters = self.letters.lock().unwrap();
        let come = *letters > 0;
        assert!(*letters <= 1, "one letter at a time");
        *letters = 0;
        come
    }

    pub fn wait_for_letter(&self) {
        while !self.letter_has_come() {
            thread::yield_now();
        }
    }

    /// Opens a letter as the header does.
    pub fn open(&self, access: Access) -> Opened {
        self.state().add_reference(from);
        let opened = self.state().open();
        if !opened.refused && !opened.leaving {
            let _ = self.wake(from);
        }
        self.drop_reference(from);
        opened
    }

    /// Where somebody is who is not at home.
    pub fn where_outside(&self) -> Access {
        if self.moved.load(Ordering::Acquire) { Access::Shared } else { Access::Remote }
    }

    /// Ends the task from inside. True if it had to wait for a letter.
    pub fn end(&self, access: Access, open_from: From) -> bool {
        self.work();
        let mut waited = false;
        let mut leave = self.state().finish_and_leave(from);
        loop {
            match leave {
                Leave::Alone => {
                    self.free();
                    return waited;
                }
                Leave::Counted => {
                    self.leave_to_others(from);
                    return waited;
                }
                Leave::Here => unreachable!("it has no handle that stays at home"),
                Leave::Later => {
                    waited = true;
                    self.wait_for_letter();
                    let opened = {
                        self.state().add_reference(open_from);
                        let opened = self.state().open();
                        self.drop_reference(open_from);
                        opened
                    };
                    assert!(opened.leaving, "who opens the letter is told to go on");
                    leave = self.state().leave(from);
                }
            }
        }
    }

    /// Takes the runnable, if one was made since.
    pub fn take_runnable(&self) -> bool {
        let (made, taken) = (self.queued.get(), self.taken.load(Ordering::Relaxed));
        assert!(made <= taken + 1, "one runnable at a time");
        self.taken.store(made, Ordering::Relaxed);
        made > taken
    }
}
