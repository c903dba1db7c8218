//! A task without a future: only its state machine, driven by the threads of a model.

#![allow(dead_code, unreachable_pub)]
#![allow(unsafe_code)]

use convoke_core::raw::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use convoke_core::raw::sync::{Arc, Mutex, UnsafeCell, thread};
use convoke_task::raw::task_state::{Access, Leave, Opened, State, Wake};

use super::model::Count;

/// A task without a future: its state machine, and cells that reveal conflicting accesses.
pub struct ModelTask {
    pub state: State,
    /// Written by the thread that is inside the task.
    pub inside: UnsafeCell<usize>,
    /// Read by each access to the task, and written when it is freed.
    pub memory: UnsafeCell<bool>,
    pub left: Left,
    /// True if it has moved away from its owner thread.
    pub moved: AtomicBool,
    /// The runnables that are queued, and the remote wakes in transit: at most one each.
    pub queued: Count,
    pub taken: AtomicUsize,
    pub remote_wakes: Mutex<usize>,
    pub ready: AtomicBool,
}

/// True if the task's kind is a permanent one: rule 6 of the header. The sender of a remote wake reads it, to
/// find the parent link, and so does the thread that frees the task.
pub struct Left(UnsafeCell<bool>);

// SAFETY: loom reports conflicting accesses to the cell.
unsafe impl Sync for Left {}
// SAFETY: the cell contains a flag.
unsafe impl Send for Left {}

impl Left {
    pub fn new() -> Self {
        Self(UnsafeCell::new(false))
    }

    pub fn set(&self) {
        // SAFETY: a write; loom reports a simultaneous access.
        self.0.with_mut(|left| unsafe { *left = true });
    }

    pub fn get(&self) -> bool {
        // SAFETY: a read; loom reports a simultaneous write.
        self.0.with(|left| unsafe { *left })
    }

    pub fn assert(&self) {
        assert!(self.get(), "the parent link is gone");
    }
}

// SAFETY: loom reports conflicting accesses to the cells.
unsafe impl Sync for ModelTask {}
// SAFETY: the cells contain numbers and flags.
unsafe impl Send for ModelTask {}

impl ModelTask {
    pub fn queued(references: u32) -> Arc<Self> {
        Arc::new(Self {
            state: State::queued(references),
            inside: UnsafeCell::new(0),
            memory: UnsafeCell::new(false),
            left: Left::new(),
            moved: AtomicBool::new(false),
            queued: Count::default(),
            taken: AtomicUsize::new(0),
            remote_wakes: Mutex::new(0),
            ready: AtomicBool::new(false),
        })
    }

    /// Returns the state, after a check that the task is not freed.
    pub fn state(&self) -> &State {
        // SAFETY: a read; loom reports a simultaneous write.
        self.memory.with(|freed| assert!(!unsafe { *freed }, "touched after it was freed"));
        &self.state
    }

    pub fn free(&self) {
        // SAFETY: a write; loom reports a simultaneous access.
        self.memory.with_mut(|freed| unsafe {
            assert!(!*freed, "freed twice");
            *freed = true;
        });
    }

    pub fn is_free(&self) -> bool {
        // SAFETY: a read; loom reports a simultaneous write.
        self.memory.with(|freed| unsafe { *freed })
    }

    /// Enters the task for a moment.
    pub fn work(&self) {
        // SAFETY: a write; loom reports a simultaneous access.
        self.inside.with_mut(|runs| unsafe { *runs += 1 });
    }

    pub fn act(&self, wake: Wake) -> Wake {
        match wake {
            Wake::Nothing => {}
            Wake::Post => _ = self.queued.add(),
            Wake::Send => {
                assert!(!self.left.get(), "the parent link is read after the task has left");
                *self.remote_wakes.lock().unwrap() += 1;
            }
        }
        wake
    }

    /// Acts on a wake as a parent does, which knows the parent link without reading the task.
    pub fn act_as_parent(&self, wake: Wake) {
        if wake == Wake::Send {
            *self.remote_wakes.lock().unwrap() += 1;
        } else {
            let _ = self.act(wake);
        }
    }

    pub fn wake(&self, access: Access) -> Wake {
        self.act(self.state().wake(access))
    }

    pub fn drop_reference(&self, access: Access) -> bool {
        let last = self.state().drop_reference(access);
        if last {
            self.left.assert();
            self.free();
        }
        last
    }

    /// Gives up the task's own reference after it has left.
    pub fn leave_to_others(&self, access: Access) -> bool {
        self.left.set();
        self.drop_reference(access)
    }

    pub fn take_remote_wake(&self) -> bool {
        let mut remote_wakes = self.remote_wakes.lock().unwrap();
        let come = *remote_wakes > 0;
        assert!(*remote_wakes <= 1, "one remote wake at a time");
        *remote_wakes = 0;
        come
    }

    pub fn wait_for_remote_wake(&self) {
        while !self.take_remote_wake() {
            thread::yield_now();
        }
    }

    /// Processes a remote wake as the header does.
    pub fn open(&self, access: Access) -> Opened {
        self.state().add_reference(access);
        let opened = self.state().open();
        if !opened.refused && !opened.leaving {
            let _ = self.wake(access);
        }
        self.drop_reference(access);
        opened
    }

    /// Returns the access of a thread that does not own the task.
    pub fn remote_access(&self) -> Access {
        if self.moved.load(Ordering::Acquire) { Access::Shared } else { Access::Remote }
    }

    /// Ends the task from inside. Returns true if it had to wait for a remote wake.
    pub fn end(&self, access: Access, open_access: Access) -> bool {
        self.work();
        let mut waited = false;
        let mut leave = self.state().finish_and_leave(access);
        loop {
            match leave {
                Leave::Alone => {
                    self.free();
                    return waited;
                }
                Leave::Counted => {
                    self.leave_to_others(access);
                    return waited;
                }
                Leave::Later => {
                    waited = true;
                    self.wait_for_remote_wake();
                    let opened = {
                        self.state().add_reference(open_access);
                        let opened = self.state().open();
                        self.drop_reference(open_access);
                        opened
                    };
                    assert!(opened.leaving, "the remote wake lets the task continue");
                    leave = self.state().leave(access);
                }
            }
        }
    }

    /// Takes the runnable, if one was created since the last call.
    pub fn take_runnable(&self) -> bool {
        let (made, taken) = (self.queued.get(), self.taken.load(Ordering::Relaxed));
        assert!(made <= taken + 1, "one runnable at a time");
        self.taken.store(made, Ordering::Relaxed);
        made > taken
    }
}
