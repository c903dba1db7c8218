//! The environment as work sees it, and the one inside an operation that only borrows.

#![allow(unsafe_code)]

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke_core::env::{Changes, FrameAllocator, Local};
use convoke_core::frames::Counting;
use convoke_core::raw::{InPlaceStop, Runnable, ScopedEnv};
use convoke_core::{Env, Executor, ExecutorRef, InlineExecutor, StopReason, StopSource};

/// An executor that counts its handles.
#[derive(Clone, Debug)]
struct CountedExecutor(Arc<()>);

impl PartialEq for CountedExecutor {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Executor for CountedExecutor {
    fn post(&self, runnable: Runnable) {
        runnable.run();
    }
}

static NAME: Local<String> = Local::inherited("name");
static ATTEMPT: Local<u32> = Local::not_inherited("attempt");
static SAME_TYPE: Local<u32> = Local::inherited("attempt");

#[test]
fn an_empty_environment_runs_inline_and_never_stops() {
    let env = Env::new();
    assert_eq!(env.executor(), &ExecutorRef::new(InlineExecutor));
    assert!(!env.stop().stop_possible());
    assert_eq!(env.allocator(), &FrameAllocator::recycling());
    assert_eq!(env.local(&NAME), None);
}

#[test]
fn a_changed_environment_leaves_the_other_as_it_was() {
    let (executor, source) = (CountedExecutor(Arc::new(())), StopSource::new());
    let env = Env::new();
    let changes = Changes::new().executor(executor.clone()).stop_token(source.token());
    let changed = env.with(changes.local(&NAME, "new".into()));
    assert_eq!(changed.executor().downcast_ref(), Some(&executor));
    assert_eq!(changed.stop_token(), source.token());
    assert_eq!(changed.local(&NAME).map(String::as_str), Some("new"));
    assert!(!env.stop().stop_possible() && env.local(&NAME).is_none());
    assert_eq!(env.executor(), &ExecutorRef::default());
    assert_eq!(Env::from(executor.clone()).executor(), changed.executor());
}

#[test]
fn a_key_is_identified_by_its_address_and_not_its_name() {
    let env = Env::new().with(Changes::new().local(&ATTEMPT, 3));
    assert_eq!((env.local(&ATTEMPT), env.local(&SAME_TYPE)), (Some(&3), None));
    assert_eq!((ATTEMPT.name(), SAME_TYPE.name()), ("attempt", "attempt"));
}

#[test]
fn a_child_drops_what_is_not_inherited_and_shares_the_rest() {
    let source = StopSource::new();
    let changes = Changes::new().stop_token(source.token()).local(&NAME, "n".into()).local(&ATTEMPT, 1);
    let child = Env::new().with(changes).child();
    assert_eq!((child.local(&NAME).map(String::as_str), child.local(&ATTEMPT)), (Some("n"), None));
    source.request_stop(StopReason::Shutdown);
    assert_eq!(child.stop().reason(), Some(StopReason::Shutdown));
    assert_eq!(child.with(Changes::new().local(&ATTEMPT, 2)).local(&ATTEMPT), Some(&2));
}

#[test]
fn frames_come_from_the_given_allocator_and_go_back_to_it() {
    let counting = Counting::new(FrameAllocator::system());
    let allocator = FrameAllocator::new(counting.clone());
    let env = Env::new().with(Changes::new().allocator(allocator.clone()));
    assert_eq!(env.allocator(), &allocator);
    assert_ne!(env.allocator(), Env::new().allocator());
    let layout = Layout::new::<[u64; 4]>();
    let memory = env.child().allocator().allocate(layout).unwrap();
    assert_eq!(counting.live(), 1);
    // SAFETY: it came from a clone of this allocator, with this layout.
    unsafe { allocator.deallocate(memory, layout) };
    assert_eq!((counting.live(), counting.total()), (0, 1));
}

#[test]
fn a_scoped_environment_borrows_what_it_does_not_change() {
    let executor = CountedExecutor(Arc::new(()));
    let source = StopSource::new();
    let parent = Env::from(executor.clone())
        .with(Changes::new().stop_token(source.token()).local(&NAME, "parent".into()));
    let handles = Arc::strong_count(&executor.0);
    // SAFETY: the parent outlives it, does not move and does not change.
    let scoped = unsafe { ScopedEnv::new(&parent, Changes::new().local(&ATTEMPT, 1)) };
    assert_eq!(Arc::strong_count(&executor.0), handles, "no handle was counted");
    assert_eq!(scoped.executor(), parent.executor());
    assert_eq!(scoped.stop_token(), source.token());
    assert_eq!(scoped.local(&NAME).map(String::as_str), Some("parent"));
    assert_eq!((scoped.local(&ATTEMPT), parent.local(&ATTEMPT)), (Some(&1), None));
    let copy = Env::clone(&scoped);
    assert_eq!(Arc::strong_count(&executor.0), handles + 1, "an owned copy is counted");
    drop(scoped);
    assert_eq!(copy.local(&ATTEMPT), Some(&1));
    drop(copy);
    assert_eq!(Arc::strong_count(&executor.0), handles);
    assert_eq!(parent.executor().downcast_ref(), Some(&executor), "the parent still has its own");
}

/// An executor whose state is in the handle itself, in one word. A clone starts with a copy of it.
struct CountsInHandle(AtomicUsize);

impl Clone for CountsInHandle {
    fn clone(&self) -> Self {
        Self(AtomicUsize::new(self.0.load(Ordering::Relaxed)))
    }
}

impl PartialEq for CountsInHandle {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Executor for CountsInHandle {
    fn post(&self, _: Runnable) {}

    fn work_began(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Regression: the handle was copied bit for bit, and the copy had a count of its own; a handle that owned
/// memory would have freed it twice. Only Miri sees that a handle with interior mutability was stored in a
/// word that is not a cell.
#[test]
fn an_executor_with_state_in_its_handle_is_lent_and_not_copied() {
    let parent = Env::from(CountsInHandle(AtomicUsize::new(0)));
    let counted = || parent.executor().downcast_ref::<CountsInHandle>().unwrap().0.load(Ordering::Relaxed);
    // SAFETY: the parent outlives it, does not move and does not change.
    let scoped = unsafe { ScopedEnv::new(&parent, Changes::new()) };
    // SAFETY: `scoped` outlives it, does not move and does not change.
    let below = unsafe { ScopedEnv::new(&scoped, Changes::new()) };
    parent.executor().work_began();
    scoped.executor().work_began();
    below.executor().work_began();
    assert_eq!(counted(), 3);
    assert_eq!(below.executor(), parent.executor());
    assert!(below.executor().downcast_ref::<CountsInHandle>().is_some());
    let clone = below.executor().clone();
    drop((below, scoped));
    clone.work_began();
    assert_eq!(counted(), 3, "a clone is an executor of its own");
}

#[test]
fn a_scoped_environment_drops_its_own_parts_and_no_others() {
    let (outer, inner) = (CountedExecutor(Arc::new(())), CountedExecutor(Arc::new(())));
    let parent = Env::from(outer.clone());
    let source = StopSource::new();
    let counting = Counting::new(FrameAllocator::system());
    let changes = Changes::new()
        .executor(inner.clone())
        .stop_token(source.token())
        .allocator(FrameAllocator::new(counting.clone()))
        .local(&NAME, "scoped".into());
    // SAFETY: the parent outlives it, does not move and does not change.
    let scoped = unsafe { ScopedEnv::new(&parent, changes) };
    assert_eq!(scoped.executor().downcast_ref(), Some(&inner));
    assert_eq!((Arc::strong_count(&outer.0), Arc::strong_count(&inner.0)), (2, 2));
    // SAFETY: `scoped` outlives it, does not move and does not change.
    let below = unsafe { ScopedEnv::new(&scoped, Changes::new()) };
    assert_eq!(below.local(&NAME).map(String::as_str), Some("scoped"));
    assert_ne!(below.allocator(), parent.allocator());
    drop(below);
    assert_eq!(counting.handles(), 2);
    drop(scoped);
    assert_eq!(counting.handles(), 1);
    assert_eq!((Arc::strong_count(&outer.0), Arc::strong_count(&inner.0)), (2, 1));
    assert!(!parent.stop().stop_possible());
}

#[test]
fn a_scoped_environment_stops_with_the_source_in_its_operation() {
    let parent = Env::new();
    // In a box, because it must not move, not even into `drop`.
    let stop = Box::new(InPlaceStop::new(None));
    // SAFETY: both outlive it, and the source does not move out of its box.
    let scoped = unsafe { ScopedEnv::with_in_place_stop(&parent, NonNull::from(&*stop)) };
    let copy = Env::clone(&scoped);
    assert!(scoped.stop().stop_possible() && !scoped.stop().stop_requested());
    stop.request_stop(StopReason::Lost);
    assert_eq!(scoped.stop().reason(), Some(StopReason::Lost));
    assert!(!parent.stop().stop_possible());
    drop(scoped);
    drop(stop);
    assert_eq!(copy.stop().reason(), Some(StopReason::Lost), "a copy outlives the operation");
}
