//! `Strand`: one thing after the other, over any executor. The state is in `turns`.

#![allow(unsafe_code)]

pub(crate) mod turns;

use core::cell::UnsafeCell;
use core::fmt;
use core::ptr::NonNull;
use std::sync::Arc;

use convoke_core::raw::sync::atomic::{AtomicBool, Ordering};
use convoke_core::raw::{Call, Header, OwnerThread, RunQueue, Runnable, Timers, WorkKind};
use convoke_core::{Executor, Panic};

use crate::running_here::Here;
use convoke_core::raw::{contain, report_panic};
use turns::{AfterPost, Next, Turns};

/// How much a strand runs before it lets others on its executor have their turn.
pub const RUNS_PER_TURN: usize = 256;

/// An executor that runs its work one at a time, in the order of posting, on another executor: a mutex for work, at
/// which nobody waits.
///
/// - *Serial*: no two pieces of a strand's work run at the same time, whatever the inner executor does; what one has
///   written the next one sees.
/// - *First in, first out*, over all posters.
/// - Queuing never allocates, and no lock is held while work runs.
/// - After [`RUNS_PER_TURN`] pieces it queues itself again on the inner executor.
/// - `dispatch` hands back to work of this strand if nothing waits before it; else it queues.
/// - If the inner executor drops the strand, all that waits completes as stopped. What is posted later is tried
///   again.
/// - A panic that leaves a piece of work goes to the [handler](Strand::with_panic_handler), and the strand goes on.
///
/// A strand is one word and cheap to clone; clones are the same strand.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sender::prelude::*;
/// use convoke::executor::Strand;
///
/// let pool = ThreadPool::new(2).unwrap();
/// let strand = Strand::new(pool.executor());
/// assert_eq!(strand, strand.clone());
/// assert_ne!(strand, Strand::new(pool.executor()));
/// assert_eq!(sync_wait(schedule(&strand).then(|()| "alone")), Outcome::Value("alone"));
/// ```
pub struct Strand<X: Executor> {
    state: Arc<State<X>>,
}

#[repr(C)]
struct State<X> {
    // First, so that a pointer to it is a pointer to the state. It belongs to whoever has the turn.
    header: UnsafeCell<Header>,
    turns: Turns,
    inner: X,
    on_panic: fn(Panic),
    /// Whether the batch that is being run has more: written and read by the thread that runs it.
    more: AtomicBool,
}

// SAFETY: the header is used through the strand's one runnable, which exists while the turn is taken; the rest is `Sync`.
unsafe impl<X: Executor> Sync for State<X> {}

impl<X: Executor> Strand<X> {
    /// A strand over `executor`.
    pub fn new(executor: X) -> Self {
        Self::with_panic_handler(executor, report_panic)
    }

    /// A strand over `executor` that tells `handler` of panics which leave its work. By default they are written to the
    /// error stream.
    pub fn with_panic_handler(executor: X, handler: fn(Panic)) -> Self {
        let state = State {
            header: UnsafeCell::new(Header::new(const { &WorkKind::new(State::<X>::call) })),
            turns: Turns::new(),
            inner: executor,
            on_panic: handler,
            more: AtomicBool::new(false),
        };
        Self { state: Arc::new(state) }
    }

    /// The executor below.
    pub fn inner(&self) -> &X {
        &self.state.inner
    }

    /// Whether the caller is work of this strand: then nothing else of it runs.
    pub fn is_running_here(&self) -> bool {
        Here::is(self.state.address())
    }
}

#[diagnostic::do_not_recommend]
impl<X: Executor> Executor for Strand<X> {
    fn post(&self, runnable: Runnable) {
        if self.state.turns.post(runnable) == AfterPost::Schedule {
            State::schedule(&self.state);
        }
    }

    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        let nothing_before_it =
            self.is_running_here() && !self.state.more.load(Ordering::Relaxed) && self.state.turns.is_empty();
        if nothing_before_it {
            return Some(runnable);
        }
        self.post(runnable);
        None
    }

    /// That of the inner executor: all that the strand is given runs there. A strand makes no home by itself: one at a time is not
    /// one thread. Nobody is woken past it (`QUEUES_LOCALLY` is not passed on): its order is over all that is posted to it.
    fn owner_thread(&self) -> Option<&OwnerThread> {
        self.state.inner.owner_thread()
    }

    fn timers(&self) -> Option<&dyn Timers> {
        self.state.inner.timers()
    }

    fn context(&self) -> Option<&(dyn core::any::Any + Send + Sync)> {
        self.state.inner.context()
    }

    fn work_began(&self) {
        self.state.inner.work_began();
    }

    fn work_ended(&self) {
        self.state.inner.work_ended();
    }
}

impl<X: Executor> State<X> {
    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Posts the strand itself. The caller has the turn and passes it on. The executor is used where it is: cloning it
    /// is the program's code, and a panic of it would lose the turn.
    fn schedule(self: &Arc<Self>) {
        let header = Arc::into_raw(self.clone()).cast_mut().cast::<Header>();
        // SAFETY: the state, which the header is the first field of (`repr(C)`), is kept alive by the count that
        // `into_raw` left, until `call` takes it back. The turn is ours, so there is no other runnable. All that
        // `call` touches is `Send` and `Sync`, so any thread may call it.
        self.inner.post(unsafe { Runnable::new(NonNull::new_unchecked(header)) });
    }

    /// # Safety
    /// Called once for each `schedule`, by its runnable.
    unsafe fn call(header: NonNull<Header>, call: Call) {
        // SAFETY: the pointer and the count are those that `schedule` gave away.
        let state = unsafe { Arc::from_raw(header.as_ptr().cast_const().cast::<Self>()) };
        match call {
            Call::Run => Self::run(state),
            Call::Stop => state.stop_all(),
        }
    }

    /// One turn.
    fn run(self: Arc<Self>) {
        let here = Here::enter(self.address());
        let mut left = RUNS_PER_TURN;
        loop {
            let Next::Work(mut batch) = self.turns.next() else { return };
            self.run_some(&mut batch, &mut left);
            if left == 0 {
                self.turns.put_back(batch);
                break;
            }
        }
        // Before the turn is passed on: on an inline executor the next turn runs inside of `schedule`.
        drop(here);
        Self::schedule(&self);
    }

    /// Runs from `batch` until it is empty or `left` is used up. A panic leaves the inner loop and comes back.
    fn run_some(&self, batch: &mut RunQueue, left: &mut usize) {
        while *left > 0 && !batch.is_empty() {
            self.contain(|| {
                while *left > 0
                    && let Some(runnable) = batch.pop()
                {
                    *left -= 1;
                    self.more.store(!batch.is_empty(), Ordering::Relaxed);
                    runnable.run();
                }
            });
        }
    }

    /// The inner executor will not run us: whatever is queued, and whatever those completions queue, is stopped.
    fn stop_all(&self) {
        while let Next::Work(mut batch) = self.turns.next() {
            while let Some(runnable) = batch.pop() {
                self.contain(|| runnable.stop());
            }
        }
    }

    fn contain(&self, f: impl FnOnce()) {
        contain(self.on_panic, f);
    }
}

impl<X: Executor> Clone for Strand<X> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone() }
    }
}

impl<X: Executor> PartialEq for Strand<X> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }
}

impl<X: Executor> Eq for Strand<X> {}

impl<X: Executor> fmt::Debug for Strand<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Strand({:#x} over {})", self.state.address(), core::any::type_name::<X>())
    }
}
