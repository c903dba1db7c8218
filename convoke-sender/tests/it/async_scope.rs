//! Scopes of the program's own: `nest`, `spawn` and `spawn_future` over any `AsyncScope`.

use std::sync::{Arc, Mutex};

use convoke_core::FrameAllocator;
use convoke_core::env::Changes;
use convoke_core::testing::ByHand;
use convoke_sender::async_scope::{Association, AsyncScope, WorkName, nest, spawn, spawn_future};
use convoke_sender::prelude::*;
use convoke_sender::testing::{Connected, Gate};
use convoke_sender::{CountingScope, sync_wait};
use convoke_testing::workshop::frames::Frames;

/// A scope that records the work that enters and leaves it.
#[derive(Clone, Default)]
struct Diary {
    lines: Arc<Mutex<Vec<String>>>,
    stop: StopSource,
    is_full: bool,
}

impl Diary {
    fn write(&self, line: &str) {
        self.lines.lock().unwrap().push(line.to_owned());
    }

    fn lines(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock().unwrap())
    }
}

struct Member {
    diary: Diary,
    is_counted: bool,
}

impl Association for Member {
    fn uncounted(&self) -> Option<Self> {
        Some(Self { diary: self.diary.clone(), is_counted: false })
    }

    fn panicked(&self, panic: Panic) {
        self.diary.write(&format!("panicked: {}", panic.message()));
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if self.is_counted {
            self.diary.write("out");
        }
    }
}

impl AsyncScope for Diary {
    type Association = Member;

    fn associate(&self, name: WorkName) -> Option<Member> {
        if self.is_full {
            self.write("refused");
            return None;
        }
        assert!(name.to_string().contains("async_scope.rs"), "{name}");
        self.write("in");
        Some(Member { diary: self.clone(), is_counted: true })
    }

    fn stop_token(&self) -> StopToken {
        self.stop.token()
    }
}

#[test]
fn work_enters_before_it_starts_and_leaves_after_it_has_completed() {
    let diary = Diary::default();
    let says = diary.clone();
    spawn(just_from(move || says.write("runs")), &diary, None).unwrap();
    assert_eq!(diary.lines(), ["in", "runs", "out"]);

    let nested = nest(just(1), &diary);
    assert!(nested.is_associated());
    assert_eq!(diary.lines(), ["in"]);
    let says = diary.clone();
    let outcome = Connected::new(nested.then(move |v| (says.write("completes"), v).1)).outcome();
    assert_eq!((outcome, diary.lines()), (Outcome::Value(1), vec!["completes".into(), "out".into()]));

    let future = spawn_future(just(2), &diary, &Env::new()).unwrap();
    assert_eq!(diary.lines(), ["in", "out"], "its result waits for a consumer, and the scope does not");
    assert_eq!(sync_wait(future), Outcome::Value(2));
}

#[test]
fn a_scope_that_refuses_gives_the_sender_back_and_nested_work_stops() {
    let diary = Diary { is_full: true, ..Diary::default() };
    let refused = spawn(just(()), &diary, None).unwrap_err();
    assert!(refused.is_closed());
    assert_eq!(sync_wait(refused.into_sender()), Outcome::Value(()));
    assert!(spawn_future(just(1), &diary, None).is_err());
    assert_eq!(sync_wait(nest(just(1), &diary)), Outcome::Stopped);
    assert_eq!(diary.lines(), ["refused"; 3]);
}

#[test]
fn a_clone_of_nested_work_is_let_in_only_if_the_scope_says_so() {
    let diary = Diary::default();
    let nested = nest(just(1), &diary);
    let clone = nested.clone();
    assert!(nested.is_associated() && !clone.is_associated());
    assert_eq!((sync_wait(clone), sync_wait(nested)), (Outcome::Stopped, Outcome::Value(1)));
    let scope = CountingScope::new();
    let nested = nest(just(1), &scope);
    assert!(nested.clone().is_associated());
    drop(nested);
    assert_eq!(sync_wait(scope.join()), Outcome::Value(()));
}

#[test]
fn a_panic_goes_to_the_scope_also_if_the_work_has_left() {
    let diary = Diary::default();
    let boom = || just_from(|| -> () { Panic::new("boom").resume() });
    spawn(boom(), &diary, None).unwrap();
    assert_eq!(diary.lines(), ["in", "panicked: boom", "out"]);
    let future = spawn_future(boom(), &diary, None).unwrap();
    assert_eq!(diary.lines(), ["in", "out"]);
    drop(future);
    assert_eq!(diary.lines(), ["panicked: boom"]);
}

#[test]
fn the_scope_stops_spawned_work_and_leaves_nested_work_alone() {
    let diary = Diary::default();
    spawn(never::<()>(), &diary, None).unwrap();
    let future = spawn_future(never::<i32>(), &diary, None).unwrap();
    let gate = Gate::<i32>::new();
    let nested = Connected::new(nest(gate.sender(), &diary)).start();
    diary.stop.request_stop(StopReason::Requested);
    assert_eq!(sync_wait(future), Outcome::Stopped);
    assert!(!nested.is_complete());
    gate.complete(Outcome::Value(1));
    assert_eq!(nested.outcome(), Outcome::Value(1));
    assert_eq!(diary.lines(), ["in", "in", "in", "out", "out", "out"]);
}

/// Returns whether the environment has this allocator.
fn has(allocator: &FrameAllocator) -> impl Sender<Value = bool, Error = Never> + use<> {
    let allocator = allocator.clone();
    read_env(move |env: &Env| *env.allocator() == allocator)
}

#[test]
fn the_allocator_of_the_environment_comes_first_then_that_of_the_sender() {
    let scope = CountingScope::new();
    let frames = || {
        let frames = Frames::at_most(1);
        (frames.clone(), FrameAllocator::new(frames))
    };
    let ((of_env, env), (of_sender, own)) = (frames(), frames());
    let env_with = Env::new().with(Changes::new().allocator(env.clone()));
    let work =
        |seen: &FrameAllocator| has(seen).write_env(Changes::new().allocator(own.clone())).then(|_| ());
    // Both name one.
    spawn(work(&env), &scope, &env_with).unwrap();
    assert_eq!((of_env.counts(), of_sender.counts()), ((0, 1), (0, 0)));
    // The environment names none, or there is none.
    let sees = spawn_future(work(&own), &scope, &Env::from(ByHand::new())).unwrap();
    assert_eq!(sync_wait(sees), Outcome::Value(()));
    spawn(work(&own).starts_on(&convoke_core::InlineExecutor).then(|()| ()), &scope, None).unwrap();
    assert_eq!((of_env.counts().1, of_sender.counts()), (1, (0, 2)), "through adaptors, too");
    // The work that surrounds the sender sees the allocator of its block.
    let around = sequence((just(()).write_env(Changes::new().allocator(own.clone())), has(&own)));
    assert_eq!(sync_wait(spawn_future(around, &scope, None).unwrap()), Outcome::Value(true));
    // Neither names one.
    let default = spawn_future(has(&FrameAllocator::default()), &scope, None).unwrap();
    assert_eq!(sync_wait(default), Outcome::Value(true));
    assert_eq!(sync_wait(scope.join()), Outcome::Value(()));
}

#[test]
fn a_sender_whose_own_allocator_has_no_memory_is_handed_back() {
    let scope = CountingScope::new();
    let none = FrameAllocator::new(Frames::at_most(0));
    let work = just(()).write_env(Changes::new().allocator(none));
    let refused = spawn(work, &scope, None).unwrap_err();
    assert!(!refused.is_closed());
    assert_eq!(sync_wait(refused.into_sender()), Outcome::Value(()));
    assert_eq!((scope.use_count(), sync_wait(scope.join())), (0, Outcome::Value(())));
}

/// A scope whose every answer is a panic, once work is inside.
struct Lawless;

impl Association for Lawless {
    fn panicked(&self, panic: Panic) {
        panic.resume();
    }
}

impl Drop for Lawless {
    fn drop(&mut self) {
        panic!("lawless");
    }
}

struct LawlessScope;

impl AsyncScope for LawlessScope {
    type Association = Lawless;

    fn associate(&self, _: WorkName) -> Option<Lawless> {
        Some(Lawless)
    }
}

#[test]
fn a_scope_that_panics_when_work_leaves_harms_no_work() {
    assert_eq!(sync_wait(nest(just(1), &LawlessScope)), Outcome::Value(1));
    spawn(just(()), &LawlessScope, None).unwrap();
    spawn(just_from(|| -> () { Panic::new("boom").resume() }), &LawlessScope, None).unwrap();
    assert_eq!(sync_wait(spawn_future(just(2), &LawlessScope, None).unwrap()), Outcome::Value(2));
}
