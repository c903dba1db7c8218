//! A program that was started on a stage of its own, moved step by step by the thread that started it.

#![allow(unsafe_code)]

use core::future::Future;
use core::panic::Location;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use convoke_core::env::Changes;
use convoke_core::frames::{Counting, FrameAllocator};
use convoke_core::{Env, Executor, Outcome, Panic, StopReason, StopSource, StopToken};

use super::super::stage::{STAGE, Stage};
use convoke_exec::RunLoop;
use convoke_inspect::diagnosis::{examine, in_tests};
use convoke_inspect::tree::{TaskNode, Tree, tree};
use convoke_task::chance::{CHANCE, Chance};
use convoke_task::launch::{LeakedRoot, leak};

/// A program that is not done by then never is.
pub(crate) const MOST_STEPS: usize = 100_000;

/// How long one waits for threads that have woken a task and not let go of it, before its memory counts as lost.
const LETTERS_TAKE: Duration = Duration::from_secs(1);

/// See the head of this file. One that is dropped before it has ended stays in memory, and its loop with it: others may point
/// into it.
pub(crate) struct Running<T> {
    run_loop: Option<Box<RunLoop>>,
    stage: Stage,
    frames: Counting<FrameAllocator>,
    source: StopSource,
    name: Arc<str>,
    root: LeakedRoot<T>,
    taken: usize,
}

impl<T> Running<T> {
    /// Starts a program that stays on this thread.
    #[track_caller]
    pub(crate) fn start<F>(name: Arc<str>, token: &StopToken, future: F) -> Self
    where
        F: Future<Output = T> + 'static,
    {
        let location = Location::caller();
        // SAFETY: `begin` calls it as work of the loop that the program runs on.
        let start = |env, name| unsafe { LeakedRoot::start_local(env, name, location, future) };
        Self::begin(name, token, start)
    }

    /// Starts a program that may move to other executors.
    #[track_caller]
    pub(crate) fn start_anywhere<F>(name: Arc<str>, token: &StopToken, future: F) -> Self
    where
        F: Future<Output = T> + Send + 'static,
    {
        let location = Location::caller();
        Self::begin(name, token, |env, name| LeakedRoot::start(env, name, location, future))
    }

    fn begin(name: Arc<str>, token: &StopToken, start: impl FnOnce(Env, Arc<str>) -> LeakedRoot<T>) -> Self {
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
        let root = run_loop.within(|| start(env, name.clone()));
        Self { run_loop: Some(run_loop), stage, frames, source, name, root, taken: 0 }
    }

    fn run_loop(&self) -> &RunLoop {
        self.run_loop.as_ref().expect("it is there until we are dropped")
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.root.has_ended()
    }

    /// How many steps were taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    pub(crate) fn stage(&self) -> &Stage {
        &self.stage
    }

    pub(crate) fn request_stop(&self) {
        self.source.request_stop(StopReason::Requested);
    }

    /// Calls `f` as work of the loop is called.
    pub(crate) fn within<R>(&self, f: impl FnOnce() -> R) -> R {
        self.run_loop().within(f)
    }

    /// Runs one piece of work, if one is queued.
    pub(crate) fn run_one(&mut self) -> Result<bool, Panic> {
        self.count(|this| this.run_loop().run_one())
    }

    /// What is done when nothing is queued: somebody who waits for that goes on, or time jumps. False if there is neither.
    pub(crate) fn go_on(&mut self) -> Result<bool, Panic> {
        self.count(|this| this.stage.blocked().release_one() || this.stage.jump())
    }

    /// Takes a step, if there is one to take.
    pub(crate) fn step(&mut self) -> Result<bool, Panic> {
        Ok(self.run_one()? || self.go_on()?)
    }

    fn count(&mut self, step: impl FnOnce(&Self) -> bool) -> Result<bool, Panic> {
        let taken = Panic::catch(|| step(self))?;
        self.taken += usize::from(taken);
        Ok(taken)
    }

    /// The program's task in the tree, if it is there.
    pub(crate) fn find_in<'a>(&self, tree: &'a Tree) -> Option<TaskNode<'a>> {
        tree.tasks().find(|task| task.has_name(&self.name))
    }

    /// Gives up a program that does not end: shows its tasks, asks it to stop so that it cleans up, and leaves it where it is
    /// if that does not help.
    pub(crate) fn give_up(mut self) -> String {
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
    pub(crate) fn end(self) -> (Outcome<T>, Left<T>) {
        let outcome = self.root.take_outcome().expect("the caller has seen that it has ended");
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
pub(crate) struct Left<T>(Running<T>);

impl<T> Left<T> {
    /// Says what was left behind: tasks, timers of operations, frames.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let Running { stage, frames, .. } = &self.0;
        let mut complaints = Vec::new();
        let tree = tree();
        let home = stage.owner_thread().map(|home| home.id());
        let mut left = Vec::new();
        for root in tree.roots() {
            collect(root, &mut left, &|task| home.is_some_and(|home| task.is_owned_by(home)));
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
        if !self.has_ended() {
            leak(Box::into_raw(self.run_loop.take().expect("taken here alone")));
        }
    }
}
