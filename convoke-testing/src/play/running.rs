//! A program on its own stage, driven step by step by the thread that started it.

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

/// The maximum number of steps of a program; one that takes more does not end.
pub(crate) const MOST_STEPS: usize = if cfg!(miri) { 5_000 } else { 100_000 };

/// The time that threads get to release a task that they have woken, before its memory counts as leaked.
const REMOTE_WAKES_TAKE: Duration = Duration::from_secs(1);

/// A program on its own stage. If it is dropped before the program has ended, the program and its loop are
/// leaked, because other threads may hold pointers into them.
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
        // `begin` calls this closure inside `RunLoop::within`, so as work of the loop that the program runs on.
        Self::begin(name, token, |env, name| LeakedRoot::start_local(env, name, location, future))
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
        self.run_loop.as_ref().expect("only `drop` takes it")
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.root.has_ended()
    }

    /// Returns the number of steps so far.
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    pub(crate) fn stage(&self) -> &Stage {
        &self.stage
    }

    pub(crate) fn request_stop(&self) {
        self.source.request_stop(StopReason::Requested);
    }

    /// Calls `f` as work of the loop.
    pub(crate) fn within<R>(&self, f: impl FnOnce() -> R) -> R {
        self.run_loop().within(f)
    }

    /// Runs one piece of queued work. Returns false if there is none.
    pub(crate) fn run_one(&mut self) -> Result<bool, Panic> {
        self.count(|this| this.run_loop().run_one())
    }

    /// Makes progress when nothing is queued: releases a task in `wait_all_blocked`, or jumps to the next
    /// timer. Returns false if there is neither.
    pub(crate) fn advance(&mut self) -> Result<bool, Panic> {
        self.count(|this| this.stage.blocked().release_one() || this.stage.jump())
    }

    /// Takes a step. Returns false if nothing is left to do.
    pub(crate) fn step(&mut self) -> Result<bool, Panic> {
        Ok(self.run_one()? || self.advance()?)
    }

    fn count(&mut self, step: impl FnOnce(&Self) -> bool) -> Result<bool, Panic> {
        let taken = Panic::catch(|| step(self))?;
        self.taken += usize::from(taken);
        Ok(taken)
    }

    /// Returns the program's task in the tree.
    pub(crate) fn find_in<'a>(&self, tree: &'a Tree) -> Option<TaskNode<'a>> {
        tree.tasks().find(|task| task.has_name(&self.name))
    }

    /// Gives up a program that does not end. Returns its task tree as text, and requests it to stop so that
    /// it cleans up; a program that still does not end is leaked.
    pub(crate) fn give_up(mut self) -> String {
        let tree = tree();
        let mut tasks = self.find_in(&tree).map(|task| task.to_string()).unwrap_or_default();
        tasks.extend(examine().iter().map(|report| format!("\n{report}")));
        self.request_stop();
        let end = self.taken + MOST_STEPS;
        while !self.has_ended() && self.taken < end && self.step().is_ok_and(|taken| taken) {}
        tasks
    }

    /// Returns the outcome and the ended program, which knows what was left behind.
    ///
    /// # Panics
    /// If it has not ended.
    pub(crate) fn end(self) -> (Outcome<T>, EndedProgram<T>) {
        let outcome = self.root.take_outcome().expect("the program has not ended");
        self.wait_for_remote_wakes();
        (outcome, EndedProgram(self))
    }
}

impl<T> Running<T> {
    /// Processes remote wakes of tasks that have ended. A thread that has woken a task may still be about to
    /// send one, so this waits until all frames are freed or a second has passed.
    fn wait_for_remote_wakes(&self) {
        let begin = Instant::now();
        loop {
            let _ = Panic::catch(|| self.run_loop().run_ready());
            if self.frames.live() == 0 || begin.elapsed() > REMOTE_WAKES_TAKE {
                return;
            }
            thread::park_timeout(Duration::from_millis(1));
        }
    }
}

/// A program that has ended, before its stage is dropped.
pub(crate) struct EndedProgram<T>(Running<T>);

impl<T> EndedProgram<T> {
    /// Lists what was left behind: tasks, timers of operations, frames.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let Running { stage, frames, .. } = &self.0;
        let mut complaints = Vec::new();
        let tree = tree();
        let owner = stage.owner_thread().map(|owner| owner.id());
        let mut left = Vec::new();
        for root in tree.roots() {
            collect(root, &mut left, &|task| owner.is_some_and(|owner| task.is_owned_by(owner)));
        }
        if !left.is_empty() {
            let tasks: String = left.iter().map(|task| format!("\n{task}")).collect();
            complaints.push(format!("it left tasks behind:{tasks}"));
        }
        if stage.has_timers() {
            complaints.push("it left an operation behind that waits for a timer".to_owned());
        }
        if frames.live() > 0 {
            let (live, bytes) = (frames.live(), frames.live_bytes());
            complaints.push(format!("{live} frames ({bytes} bytes) were not freed"));
        }
        complaints
    }
}

/// Collects the topmost tasks that satisfy `is_ours`.
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
            leak(Box::into_raw(self.run_loop.take().expect("only `drop` takes it")));
        }
    }
}
