//! Chains of stop sources, and lists of locals, that are longer than the stack is deep. Regression: requests
//! and drops went from one link to the next by recursion and overflowed the stack.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread;

use convoke_core::env::{Changes, Local};
use convoke_core::{Env, StopReason, StopSource, StopToken};

use convoke_testing::workshop::counting::allocations;

/// More levels than any stack of the tests can hold, at one frame each.
const DEEP: usize = if cfg!(miri) { 80 } else { 50_000 };

/// Runs `f` on a small stack, so that recursion overflows it soon.
fn on_a_small_stack(f: impl FnOnce() + Send + 'static) {
    let stack = if cfg!(miri) { 1 << 20 } else { 128 << 10 };
    thread::Builder::new().stack_size(stack).spawn(f).unwrap().join().unwrap();
}

/// Creates sources of which each is a child of the one before.
fn chain(root: &StopSource) -> Vec<StopSource> {
    let mut sources = vec![root.clone()];
    for _ in 0..DEEP {
        let child = sources.last().unwrap().token().child();
        sources.push(child);
    }
    sources
}

#[test]
fn a_request_reaches_the_last_of_many_linked_sources() {
    on_a_small_stack(|| {
        let root = StopSource::new();
        let sources = chain(&root);
        root.request_stop(StopReason::Shutdown);
        assert!(sources.iter().all(|source| source.token().reason() == Some(StopReason::Shutdown)));
    });
}

#[test]
fn a_request_down_a_chain_allocates_nothing() {
    let root = StopSource::new();
    let sources = chain(&root);
    assert_eq!(allocations(|| _ = root.request_stop(StopReason::Shutdown)), 0);
    drop(sources);
}

#[test]
fn the_last_token_of_a_long_chain_is_dropped_without_recursion() {
    on_a_small_stack(|| {
        let root = StopSource::new();
        let last = chain(&root).pop().unwrap().token();
        assert!(format!("{last:?}").len() < 1000, "a token does not show its ancestors");
        drop(last);
        assert!(root.request_stop(StopReason::Requested));
    });
}

#[test]
fn threads_that_drop_the_two_ends_of_a_chain_at_once_free_all_of_it() {
    for _ in 0..if cfg!(miri) { 5 } else { 200 } {
        let mut token = StopSource::new().token();
        for _ in 0..20 {
            token = token.child().token();
        }
        let other = token.clone();
        let thread = thread::spawn(move || drop(other));
        drop(token);
        thread.join().unwrap();
    }
}

/// Registers a callback with `token` that notes `name`. Dropping the result removes it.
fn note(token: StopToken, notes: &Arc<Mutex<Vec<&'static str>>>, name: &'static str) -> impl Sized {
    let notes = notes.clone();
    let callback = Box::pin(token.on_stop(move |_| notes.lock().unwrap().push(name)));
    callback.as_ref().register();
    callback
}

#[test]
fn the_callbacks_of_a_child_run_at_the_position_of_its_link() {
    let (root, notes) = (StopSource::new(), Arc::default());
    let _oldest = note(root.token(), &notes, "oldest");
    let child = root.token().child();
    let _in_child = note(child.token(), &notes, "in the child");
    let grandchild = child.token().child();
    let _in_grandchild = note(grandchild.token(), &notes, "in the grandchild");
    let _newest_in_child = note(child.token(), &notes, "newest in the child");
    let _newest = note(root.token(), &notes, "newest");
    root.request_stop(StopReason::Requested);
    let order = ["newest", "newest in the child", "in the grandchild", "in the child", "oldest"];
    assert_eq!(*notes.lock().unwrap(), order);
}

#[test]
fn a_panic_in_a_grandchild_resumes_at_the_root_after_all_have_run() {
    let (root, notes) = (StopSource::new(), Arc::default());
    let _oldest = note(root.token(), &notes, "oldest");
    let child = root.token().child();
    let grandchild = child.token().child();
    let panics = Box::pin(grandchild.token().on_stop(|_| panic!("in the grandchild")));
    panics.as_ref().register();
    let request = catch_unwind(AssertUnwindSafe(|| root.request_stop(StopReason::Requested)));
    assert_eq!(request.unwrap_err().downcast_ref(), Some(&"in the grandchild"));
    assert_eq!(*notes.lock().unwrap(), ["oldest"]);
}

#[test]
fn many_nested_locals_are_found_and_dropped_without_recursion() {
    static FIRST: Local<u32> = Local::inherited("first");
    static OTHER: Local<usize> = Local::inherited("other");
    on_a_small_stack(|| {
        let mut env = Env::new().with(Changes::new().local(&FIRST, 7));
        for depth in 0..DEEP {
            env = env.with(Changes::new().local(&OTHER, depth)).child();
        }
        assert_eq!((env.local(&FIRST), env.local(&OTHER)), (Some(&7), Some(&(DEEP - 1))));
        drop(env);
    });
}
