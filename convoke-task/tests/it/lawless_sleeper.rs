//! Run loops over misbehaving sleepers. A sleeper, its clock and its choice of the next work are safe code: they may panic, return
//! for no reason, report impossible times, and run the loop that called them. None of that may cause undefined behaviour. Where the
//! loop cannot go on, the process aborts with a message: such cases run in a process of their own.
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use crate::lawless::end_in_order;
use convoke::executor::RunLoopExecutor;
use convoke::executor::{BlockOn, RunLoop};
use convoke::prelude::*;
use convoke::raw::{OwnerThread, Runnable, Sleeper, Timers};
use convoke::sender::prelude::*;
use convoke::time::sleep_until;
use convoke::{Panic, launch};

const MILLISECOND: Duration = Duration::from_millis(1);

/// A function of a sleeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Called {
    Now,
    Sleep,
    Look,
    Wake,
    Jumps,
    LookEach,
    Choose,
}

const ALL: [Called; 7] =
    [Called::Now, Called::Sleep, Called::Look, Called::Wake, Called::Jumps, Called::LookEach, Called::Choose];

/// A sleeper that is lawful but for what `on_call` does, which hears of every call and of how many there were. It never blocks.
struct Lawless<F> {
    on_call: F,
    calls: AtomicUsize,
    clock: fn() -> Instant,
    choice: usize,
    runs_per_check: u32,
}

impl<F: Fn(Called, usize) + Send + Sync> Lawless<F> {
    fn new(on_call: F) -> Self {
        Self { on_call, calls: AtomicUsize::new(0), clock: Instant::now, choice: 0, runs_per_check: 1 }
    }

    fn called(&self, called: Called) {
        (self.on_call)(called, self.calls.fetch_add(1, Ordering::Relaxed));
    }
}

impl<F: Fn(Called, usize) + Send + Sync> Sleeper for Lawless<F> {
    fn now(&self) -> Instant {
        self.called(Called::Now);
        (self.clock)()
    }

    fn sleep(&self, _: Option<Instant>) {
        self.called(Called::Sleep);
        thread::yield_now();
    }

    fn check(&self) {
        self.called(Called::Look);
    }

    fn wake(&self) {
        self.called(Called::Wake);
    }

    fn jumps(&self) -> bool {
        self.called(Called::Jumps);
        false
    }

    fn runs_per_check(&self) -> u32 {
        self.called(Called::LookEach);
        self.runs_per_check
    }

    fn choose(&self, _: usize) -> usize {
        self.called(Called::Choose);
        self.choice
    }
}

/// A program that has the loop call every function of its sleeper, and borrows from the stack that the loop runs on.
fn uses(run_loop: &RunLoop) -> u32 {
    let (mut sum, one) = (0, 1);
    let ended = run_loop.block_on(async {
        scope(async |s| {
            for _ in 0..3 {
                s.child().local().spawn(async {
                    checkpoint().await;
                    sleep(MILLISECOND / 8).await;
                });
            }
            let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
            let woken = thread::spawn(move || waker.wake());
            sleep_until(Instant::now() + MILLISECOND / 8).await;
            let _ = woken.join();
        })
        .await;
        sum += one;
    });
    assert_eq!(ended, Outcome::Value(()));
    sum
}

#[test]
fn a_sleeper_that_never_blocks_is_asked_again() {
    let run_loop = RunLoop::over(Arc::new(Lawless::new(|_, _| {})), None);
    assert_eq!(uses(&run_loop), 1);
}

/// A panic does not unwind the stack below the loop with work queued that borrows from it.
#[test]
fn a_sleeper_that_panics_ends_in_order() {
    const TIMES: [usize; 3] = [0, 1, 9];
    end_in_order("a_sleeper_that_panics_ends_in_order", ALL.len() * TIMES.len(), |case| {
        let (panics, times) = (ALL[case / TIMES.len()], TIMES[case % TIMES.len()]);
        let (calls, on) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
        let begun = on.clone();
        let sleeper = Lawless::new(move |called, _| {
            if called == panics && begun.load(Ordering::Relaxed) == 1 {
                assert_ne!(calls.fetch_add(1, Ordering::Relaxed), times, "lawless {called:?}");
            }
        });
        let run_loop = RunLoop::over(Arc::new(sleeper), None);
        on.store(1, Ordering::Relaxed);
        uses(&run_loop);
    });
}

thread_local! {
    /// The loop of this thread, for sleepers to come back into.
    static LOOP: RefCell<Option<Rc<RunLoop>>> = const { RefCell::new(None) };
}

/// Does something with the loop of this thread, from inside of one of its own calls.
fn come_back(way: usize) {
    let Some(run_loop) = LOOP.with_borrow(Clone::clone) else { return };
    match way {
        0 => _ = run_loop.run_ready(),
        1 => _ = run_loop.run_one(),
        2 => run_loop.run_while(|_| false),
        3 => {
            let _ = run_loop.block_on(async { checkpoint().await });
        }
        4 => {
            if run_loop.doze() {
                run_loop.rouse();
            }
        }
        5 => _ = (run_loop.next_timer(), run_loop.has_timers(), run_loop.has_work()),
        6 => assert_eq!(sync_wait(task(checkpoint())), Outcome::Value(())),
        7 => {
            launch(&run_loop.executor()).start(async {}).wait_in_place();
        }
        _ => {
            run_loop.executor().work_began();
            run_loop.executor().work_ended();
        }
    }
}

/// Waits for a chain as a task would, on the thread that runs it.
trait WaitInPlace {
    fn wait_in_place(self);
}

impl<T: Send + 'static> WaitInPlace for convoke::task::Launched<T> {
    fn wait_in_place(self) {
        let _ = sync_wait(task(async move { drop(self) }));
    }
}

#[test]
fn a_sleeper_that_comes_back_into_its_loop_ends_in_order() {
    const WAYS: usize = 9;
    end_in_order("a_sleeper_that_comes_back_into_its_loop_ends_in_order", ALL.len() * WAYS, |case| {
        let (back, way) = (ALL[case / WAYS], case % WAYS);
        let inside = AtomicUsize::new(0);
        let sleeper = Lawless::new(move |called, _| {
            if called == back && inside.swap(1, Ordering::Relaxed) == 0 {
                come_back(way);
                inside.store(0, Ordering::Relaxed);
            }
        });
        let run_loop = Rc::new(RunLoop::over(Arc::new(sleeper), None));
        LOOP.set(Some(run_loop.clone()));
        // A chain that is launched on the loop from inside of it is run by the loop around, or not at all.
        if way != 7 {
            assert_eq!(uses(&run_loop), 1);
        }
        LOOP.set(None);
    });
}

#[test]
fn who_chooses_what_is_not_there_gets_the_first() {
    for (choice, runs_per_check) in [(usize::MAX, 1), (3, 0), (1, u32::MAX), (2, 1)] {
        let sleeper = Lawless { choice, runs_per_check, ..Lawless::new(|_, _| {}) };
        assert_eq!(uses(&RunLoop::over(Arc::new(sleeper), None)), 1);
    }
}

/// A sleeper empties the queue from which it then chooses the next work.
#[test]
fn who_chooses_after_the_queue_was_emptied_gets_what_is_left() {
    let emptied = Arc::new(AtomicUsize::new(0));
    let count = emptied.clone();
    let sleeper = Lawless {
        choice: 2,
        ..Lawless::new(move |called, _| {
            if called == Called::Choose && count.fetch_add(1, Ordering::Relaxed) < 4 {
                come_back(0);
            }
        })
    };
    let run_loop = Rc::new(RunLoop::over(Arc::new(sleeper), None));
    LOOP.set(Some(run_loop.clone()));
    assert_eq!(uses(&run_loop), 1);
    LOOP.set(None);
    assert!(emptied.load(Ordering::Relaxed) > 0, "there was nothing to choose from");
}

static BEGIN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);

/// Clocks that jump about and run back. Each shows a time again and again that is later than all before.
fn lawless_clocks() -> [fn() -> Instant; 2] {
    static TICKS: AtomicUsize = AtomicUsize::new(0);
    /// A number by chance, the same in each run.
    fn draw() -> u64 {
        (TICKS.fetch_add(1, Ordering::Relaxed) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48
    }
    [
        || if draw().is_multiple_of(2) { *BEGIN } else { Instant::now() + Duration::from_secs(1 << 20) },
        || match draw() {
            n if n.is_multiple_of(4) => Instant::now() + Duration::from_secs(3600),
            n => BEGIN.checked_sub(Duration::from_millis(n)).unwrap_or(*BEGIN),
        },
    ]
}

/// The last time that there is, or nearly.
fn last_instant() -> Instant {
    let mut last = *BEGIN;
    let mut step = Duration::from_secs(1 << 62);
    while step > Duration::from_secs(1) {
        match last.checked_add(step) {
            Some(later) => last = later,
            None => step /= 2,
        }
    }
    last
}

#[test]
fn a_clock_that_shows_what_it_likes_touches_nothing_of_others() {
    for clock in lawless_clocks() {
        let sleeper = Lawless { clock, ..Lawless::new(|_, _| {}) };
        assert_eq!(uses(&RunLoop::over(Arc::new(sleeper), None)), 1);
    }
}

/// After the last time that there is nothing is due any more; nor does anything overflow.
#[test]
fn a_clock_that_shows_the_last_time_there_is_runs_on_without_timers() {
    let sleeper = Lawless { clock: last_instant, ..Lawless::new(|_, _| {}) };
    let run_loop = RunLoop::over(Arc::new(sleeper), None);
    let borrowed = String::from("borrowed");
    let ended = run_loop.block_on(async {
        let sleeps = async {
            let far = Duration::from_secs(1 << 31);
            let _ = join((sleep(far), sleep_until(last_instant()), timeout(far, sleep(far)))).await;
        };
        let others = async {
            // Woken from elsewhere: the loop sleeps until then, and so looks for the time of its first timer.
            let mut woken = None;
            poll_fn(|cx| match woken.take() {
                Some(thread) => {
                    thread::JoinHandle::<()>::join(thread).unwrap();
                    Poll::Ready(())
                }
                None => {
                    let waker = cx.waker().clone();
                    woken = Some(thread::spawn(move || waker.wake()));
                    Poll::Pending
                }
            })
            .await;
            for _ in 0..8 {
                checkpoint().await;
            }
        };
        race((sleeps, others)).await;
        borrowed.len()
    });
    assert_eq!(ended, Outcome::Value(8));
}

/// Runs its work on whatever thread comes, and waits by the timers of a loop that is not run there.
#[derive(Clone, PartialEq)]
struct Elsewhere(RunLoopExecutor, convoke::executor::PoolExecutor);

impl Executor for Elsewhere {
    fn post(&self, runnable: Runnable) {
        self.1.post(runnable);
    }

    fn owner_thread(&self) -> Option<&OwnerThread> {
        None
    }

    fn timers(&self) -> Option<&dyn Timers> {
        self.0.timers()
    }
}

/// Polls a long sleep by timers whose clock shows this, on a thread that is not the loop's, and drops it. Whether it could be armed.
fn arm_by(clock: fn() -> Instant) -> bool {
    let pool = ThreadPool::new(1).unwrap();
    let begun = Arc::new(AtomicBool::new(false));
    let has_begun = begun.clone();
    let shows = move || if has_begun.load(Ordering::Relaxed) { clock() } else { Instant::now() };
    let run_loop = RunLoop::over(Arc::new(Clocked(Lawless::new(|_, _| {}), shows)), None);
    begun.store(true, Ordering::Relaxed);
    let polls = async {
        let mut far = Box::pin(sleep(Duration::from_secs(1 << 31)).into_future());
        poll_fn(|cx| Poll::Ready(Panic::catch(|| far.as_mut().poll(cx).is_ready()).is_ok())).await
    };
    launch(&Elsewhere(run_loop.executor(), pool.executor())).start(polls).wait().unwrap()
}

/// Arming a timer asks the clock, and a time after the last one cannot be named: then nothing was armed, and nothing must be taken
/// back.
#[test]
fn a_timer_that_could_not_be_armed_is_not_taken_back() {
    assert!(!arm_by(last_instant));
}

#[test]
fn a_clock_that_panics_away_from_its_loop_ends_in_order() {
    end_in_order("a_clock_that_panics_away_from_its_loop_ends_in_order", 1, |_| {
        let _ = arm_by(|| panic!("lawless clock"));
    });
}

/// A sleeper with another clock.
struct Clocked<S, F>(S, F);

impl<S: Sleeper, F: Fn() -> Instant + Send + Sync> Sleeper for Clocked<S, F> {
    fn now(&self) -> Instant {
        (self.1)()
    }

    fn sleep(&self, until: Option<Instant>) {
        self.0.sleep(until);
    }

    fn check(&self) {
        self.0.check();
    }

    fn wake(&self) {
        self.0.wake();
    }
}

/// A poster wakes the sleeper last: a panic of `wake` reaches the poster, and the work is queued.
#[test]
fn a_sleeper_that_panics_when_it_is_woken_does_not_lose_what_was_posted() {
    end_in_order("a_sleeper_that_panics_when_it_is_woken_does_not_lose_what_was_posted", 1, |_| {
        let sleeper = Lawless::new(|called, _| assert_ne!(called, Called::Wake, "lawless wake"));
        let run_loop = RunLoop::over(Arc::new(sleeper), None);
        for _ in 0..16 {
            let mut woken = None;
            let ran = run_loop.block_on(poll_fn(|cx| match woken.take() {
                Some(thread) => {
                    let _: thread::Result<()> = thread::JoinHandle::join(thread);
                    Poll::Ready(())
                }
                None => {
                    let waker = cx.waker().clone();
                    woken = Some(thread::spawn(move || waker.wake()));
                    Poll::Pending
                }
            }));
            assert_eq!(ran, Outcome::Value(()));
        }
    });
}
