//! A program that was started on a stage of its own, moved step by step by the thread that started it.

use core::future::Future;
use core::panic::Location;
use core::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use convoke_core::env::Changes;
use convoke_core::frames::{Counting, FrameAllocator};
use convoke_core::{Env, Executor, Outcome, Panic, StopReason, StopSource, StopToken};

use super::super::stage::{STAGE, Stage};
use crate::chance::{CHANCE, Chance};
use crate::diagnosis::{examine, in_tests};
use crate::launch::Ground;
use crate::run_loop::RunLoop;
use crate::task::{Ending, Known, TaskHeader, no_memory};
use crate::tree::{TaskNode, Tree, tree};

/// A program that is not done by then never is.
pub(in crate::testing) const MOST_STEPS: usize = 100_000;

/// How long one waits for threads that have woken a task and not let go of it, before its memory counts as lost.
const LETTERS_TAKE: Duration = Duration::from_secs(1);

/// See the head of this file. One that is dropped before it has ended stays in memory, and its loop with it: others may point
/// into it.
pub(in crate::testing) struct Running<T> {
    run_loop: Option<Box<RunLoop>>,
    stage: Stage,
    frames: Counting<FrameAllocator>,
    source: StopSource,
    name: Arc<str>,
    room: NonNull<Room<T>>,
    taken: usize,
}

/// What the program's task leads to.
#[repr(C)]
struct Room<T> {
    ground: Ground,
    end: End<T>,
}

type End<T> = Arc<Mutex<Ended<T>>>;

enum Ended<T> {
    NotYet,
    With(Outcome<T>),
    /// The outcome was taken.
    Taken,
}

/// The outcome goes to the room, or what is left of it.
struct ToRoom<T> {
    room: NonNull<Room<T>>,
    end: End<T>,
}

// SAFETY: the task is not freed by what is done here.
unsafe impl<T> Ending<T> for ToRoom<T> {
    unsafe fn ended(&self, _: NonNull<TaskHeader>, _: NonNull<Outcome<T>>) {
        // SAFETY: the room stays until the outcome was delivered; called once.
        unsafe { self.room.as_ref().ground.ended() };
    }

    unsafe fn deliver(&self, _: NonNull<TaskHeader>, room: NonNull<Outcome<T>>) -> Known {
        // SAFETY: the outcome is there, and taken once.
        *lock(&self.end) = Ended::With(unsafe { room.read() });
        Known::ToTheParent
    }
}

fn lock<T>(end: &End<T>) -> MutexGuard<'_, Ended<T>> {
    end.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Running<T> {
    /// Starts a program that stays on this thread.
    #[track_caller]
    pub(in crate::testing) fn start<F>(name: Arc<str>, token: &StopToken, future: F) -> Self
    where
        F: Future<Output = T> + 'static,
    {
        // SAFETY: it is local.
        unsafe { Self::begin(name, token, future, true) }
    }

    /// Starts a program that may move to other executors.
    #[track_caller]
    pub(in crate::testing) fn start_anywhere<F>(name: Arc<str>, token: &StopToken, future: F) -> Self
    where
        F: Future<Output = T> + Send + 'static,
    {
        // SAFETY: it is `Send`.
        unsafe { Self::begin(name, token, future, false) }
    }

    /// # Safety
    /// The future is `Send`, or the task is local.
    #[track_caller]
    unsafe fn begin<F>(name: Arc<str>, token: &StopToken, future: F, local: bool) -> Self
    where
        F: Future<Output = T> + 'static,
    {
        let location = Location::caller();
        in_tests();
        let run_loop = Box::new(RunLoop::new());
        let stage = Stage::new(run_loop.executor());
        let frames = Counting::new(FrameAllocator::default());
        let source = token.child();
        let env = Env::new().with(
            Changes::new()
                .executor(stage.clone())
                .stop_token(source.token())
                .allocator(FrameAllocator::new(frames.clone()))
                .local(&STAGE, stage.clone())
                .local(&CHANCE, Chance::seeded(0)),
        );
        let room = NonNull::from(Box::leak(Box::<Room<T>>::new_uninit())).cast::<Room<T>>();
        let end = Arc::new(Mutex::new(Ended::NotYet));
        // SAFETY: the ground is the first field (`repr(C)`) of what is put there.
        unsafe {
            let ground = Ground::new(room.cast(), env, Some(name.clone()));
            room.write(Room { ground, end: end.clone() });
        }
        let this = Self { run_loop: Some(run_loop), stage, frames, source, name, room, taken: 0 };
        let started = this.run_loop().within(|| {
            // SAFETY: this thread runs the loop, and so is at home. The room stays until the task has delivered: see
            // `drop`. The future borrows nothing; the rest is the caller's.
            unsafe { room.as_ref().ground.start(future, ToRoom { room, end }, local, location) }
        });
        if let Err(future) = started {
            drop(future);
            *lock(&this.room().end) = Ended::With(Outcome::Panicked(no_memory::<F>(location)));
        }
        this
    }

    fn room(&self) -> &Room<T> {
        // SAFETY: it is freed when we are dropped.
        unsafe { self.room.as_ref() }
    }

    fn run_loop(&self) -> &RunLoop {
        self.run_loop.as_ref().expect("it is there until we are dropped")
    }

    pub(in crate::testing) fn has_ended(&self) -> bool {
        !matches!(*lock(&self.room().end), Ended::NotYet)
    }

    /// How many steps were taken.
    pub(in crate::testing) fn taken(&self) -> usize {
        self.taken
    }

    pub(in crate::testing) fn stage(&self) -> &Stage {
        &self.stage
    }

    pub(in crate::testing) fn request_stop(&self) {
        self.source.request_stop(StopReason::Requested);
    }

    /// Calls `f` as work of the loop is called.
    pub(in crate::testing) fn within<R>(&self, f: impl FnOnce() -> R) -> R {
        self.run_loop().within(f)
    }

    /// Runs one piece of work, if one is queued.
    pub(in crate::testing) fn run_one(&mut self) -> Result<bool, Panic> {
        self.count(|this| this.run_loop().run_one())
    }

    /// What is done when nothing is queued: somebody who waits for that goes on, or time jumps. False if there is neither.
    pub(in crate::testing) fn go_on(&mut self) -> Result<bool, Panic> {
        self.count(|this| this.stage.blocked().release_one() || this.stage.jump())
    }

    /// Takes a step, if there is one to take.
    pub(in crate::testing) fn step(&mut self) -> Result<bool, Panic> {
        Ok(self.run_one()? || self.go_on()?)
    }

    fn count(&mut self, step: impl FnOnce(&Self) -> bool) -> Result<bool, Panic> {
        let taken = Panic::catch(|| step(self))?;
        self.taken += usize::from(taken);
        Ok(taken)
    }

    /// The program's task in the tree, if it is there.
    pub(in crate::testing) fn find_in<'a>(&self, tree: &'a Tree) -> Option<TaskNode<'a>> {
        tree.tasks().find(|task| task.has_name(&self.name))
    }

    /// Gives up a program that does not end: shows its tasks, asks it to stop so that it cleans up, and leaves it where it is
    /// if that does not help.
    pub(in crate::testing) fn give_up(mut self) -> String {
        let tree = tree();
        let mut tasks = self.find_in(&tree).map(|task| task.to_string()).unwrap_or_default();
        tasks.extend(examine().iter().map(|report| format!("\n{report}")));
        self.request_stop();
        let end = self.taken + MOST_STEPS;
        while !self.has_ended() && self.taken < end && self.step().is_ok_and(|taken| taken) {}
        tasks
    }

    /// What came of it, and what it has left behind.
    ///
    /// # Panics
    /// If it has not ended.
    pub(in crate::testing) fn end(self) -> (Outcome<T>, Left<T>) {
        let end = core::mem::replace(&mut *lock(&self.room().end), Ended::Taken);
        let Ended::With(outcome) = end else { unreachable!("the caller has seen that it has ended") };
        self.wait_for_letters();
        (outcome, Left(self))
    }
}

impl<T> Running<T> {
    /// Opens the letters to those who have gone. A thread that has woken a task may still have its hands on it, and be about to
    /// send one: it is given a while.
    fn wait_for_letters(&self) {
        let begin = Instant::now();
        loop {
            let _ = Panic::catch(|| self.run_loop().run_ready());
            if self.frames.live() == 0 || begin.elapsed() > LETTERS_TAKE {
                return;
            }
            thread::park_timeout(Duration::from_millis(1));
        }
    }
}

/// A program that has ended, before its stage is taken down.
pub(in crate::testing) struct Left<T>(Running<T>);

impl<T> Left<T> {
    /// Says what was left behind: tasks, timers of operations, frames.
    pub(in crate::testing) fn complaints(&self) -> Vec<String> {
        let Running { stage, frames, .. } = &self.0;
        let mut complaints = Vec::new();
        let tree = tree();
        let home = stage.home().map(|home| home.id());
        let mut left = Vec::new();
        for root in tree.roots() {
            collect(root, &mut left, &|task| home.is_some_and(|home| task.lives_in(home)));
        }
        if !left.is_empty() {
            let tasks: String = left.iter().map(|task| format!("\n{task}")).collect();
            complaints.push(format!("it left tasks behind:{tasks}"));
        }
        if stage.has_timers() {
            complaints.push("it left an operation behind that waits for a time".to_owned());
        }
        if frames.live() > 0 {
            let (live, bytes) = (frames.live(), frames.live_bytes());
            complaints
                .push(format!("{live} pieces of memory for frames ({bytes} bytes) were not given back"));
        }
        complaints
    }
}

/// The highest of those below that are ours.
fn collect<'a>(task: TaskNode<'a>, found: &mut Vec<TaskNode<'a>>, is_ours: &impl Fn(TaskNode<'a>) -> bool) {
    if is_ours(task) {
        found.push(task);
    } else {
        task.children().for_each(|child| collect(child, found, is_ours));
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        if self.has_ended() {
            // SAFETY: the task has delivered, and does not look at the room any more, which was made as a box.
            drop(unsafe { Box::from_raw(self.room.as_ptr()) });
        } else {
            keep_for_ever(self.room.as_ptr());
            keep_for_ever(Box::into_raw(self.run_loop.take().expect("taken here alone")));
        }
    }
}

/// What has not ended must stay where it is. Its address is kept, too: leak checkers then know that it is meant.
fn keep_for_ever<T>(kept: *mut T) {
    static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(kept.expose_provenance());
}
