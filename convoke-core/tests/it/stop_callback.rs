//! The rules of stop callbacks, one by one, through the public interface.

#![allow(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;

use convoke_core::raw::{InPlaceStop, Random};
use convoke_core::{OwnedStopCallback, StopCallback, StopReason, StopSource, StopToken};
use convoke_sender::raw::Children;

use convoke_testing::workshop::counting::allocations;

/// The notes of the callbacks of a test, in order.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    /// Registers a callback that notes its name and the reason.
    fn on_stop(&self, token: &StopToken, name: &'static str) -> Pin<Box<OwnedStopCallback<Call>>> {
        let diary = self.clone();
        let call: Call = Box::new(move |reason| diary.note(format!("{name}: {reason}")));
        let callback = Box::pin(token.clone().on_stop(call));
        callback.as_ref().register();
        callback
    }

    #[track_caller]
    fn assert(&self, expected: &[&str]) {
        assert_eq!(*self.0.lock().unwrap(), expected);
    }
}

type Call = Box<dyn FnOnce(StopReason) + Send>;
type Holder = Arc<Mutex<Option<Pin<Box<OwnedStopCallback<Call>>>>>>;

#[test]
fn callbacks_run_once_newest_first_on_the_thread_of_the_request() {
    let (source, diary) = (StopSource::new(), Diary::default());
    let token = source.token();
    let _callbacks = ["oldest", "middle", "newest"].map(|name| diary.on_stop(&token, name));
    let (callback_thread, requester) = {
        let (token, diary) = (token.clone(), diary.clone());
        let callback_thread = Arc::new(Mutex::new(None));
        let record = callback_thread.clone();
        let callback = Box::pin(token.on_stop(move |_| {
            *record.lock().unwrap() = Some(thread::current().id());
            diary.note("thread");
        }));
        callback.as_ref().register();
        let source = source.clone();
        let requester =
            thread::spawn(move || (source.request_stop(StopReason::Lost), thread::current().id()));
        let (first, requester) = requester.join().unwrap();
        assert!(first);
        (callback_thread.lock().unwrap().unwrap(), requester)
    };
    assert_eq!(callback_thread, requester);
    assert!(!source.request_stop(StopReason::Requested));
    diary.assert(&[
        "thread",
        "newest: a sibling was faster",
        "middle: a sibling was faster",
        "oldest: a sibling was faster",
    ]);
}

#[test]
fn a_callback_registered_too_late_runs_at_once_and_once() {
    let (source, diary) = (StopSource::new(), Diary::default());
    source.request_stop(StopReason::Abandoned);
    let callback = diary.on_stop(&source.token(), "late");
    diary.assert(&["late: its result is not wanted any more"]);
    callback.as_ref().register();
    drop(callback);
    diary.assert(&["late: its result is not wanted any more"]);
}

#[test]
fn registering_twice_is_registering_once() {
    let (source, diary) = (StopSource::new(), Diary::default());
    let callback = diary.on_stop(&source.token(), "once");
    callback.as_ref().register();
    source.request_stop(StopReason::Requested);
    callback.as_ref().register();
    diary.assert(&["once: stop requested"]);
}

#[test]
fn a_callback_that_was_dropped_or_never_registered_does_not_run() {
    let (source, diary) = (StopSource::new(), Diary::default());
    drop(diary.on_stop(&source.token(), "dropped"));
    let _never_registered = source.token().on_stop(|_| unreachable!());
    source.request_stop(StopReason::Requested);
    diary.assert(&[]);
}

#[test]
fn a_callback_drops_its_closure_when_it_is_dropped_unrun() {
    let held = Arc::new(());
    let source = StopSource::new();
    let own = held.clone();
    let callback = Box::pin(source.token().on_stop(move |_| drop(own)));
    callback.as_ref().register();
    assert_eq!(Arc::strong_count(&held), 2);
    drop(callback);
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn a_panic_lets_the_other_callbacks_run_and_resumes_at_the_requester() {
    let (source, diary) = (StopSource::new(), Diary::default());
    let token = source.token();
    let child = token.child();
    let _oldest = diary.on_stop(&token, "oldest");
    let second = pin!(token.clone().on_stop(|_| panic!("the second panic")));
    second.as_ref().register();
    let _middle = diary.on_stop(&child.token(), "below");
    let first = pin!(token.clone().on_stop(|_| panic!("the first panic")));
    first.as_ref().register();
    let _newest = diary.on_stop(&token, "newest");
    let panic = catch_unwind(AssertUnwindSafe(|| source.request_stop(StopReason::Requested))).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the first panic"));
    // The child was created, and so linked, before `oldest` was registered.
    diary.assert(&["newest: stop requested", "oldest: stop requested", "below: stop requested"]);
    assert!(!source.request_stop(StopReason::Requested), "the request was made");
    drop(diary.on_stop(&token, "late"));
}

#[test]
fn a_panic_in_a_child_resumes_at_the_parent() {
    let parent = StopSource::new();
    let child = parent.token().child();
    let callback = pin!(child.token().on_stop(|_| panic!("below")));
    callback.as_ref().register();
    let panic = catch_unwind(AssertUnwindSafe(|| parent.request_stop(StopReason::Requested))).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"below"));
    assert!(child.stop_requested());
}

#[test]
fn a_panic_whose_payload_touches_the_source_or_panics_again_does_no_harm() {
    struct Payload(StopToken);
    impl Drop for Payload {
        fn drop(&mut self) {
            let callback = pin!(self.0.clone().on_stop(|_| ()));
            callback.as_ref().register();
            panic!("dropping the payload");
        }
    }
    let (source, diary) = (StopSource::new(), Diary::default());
    let token = source.token();
    let _oldest = diary.on_stop(&token, "oldest");
    let payload = Payload(token.clone());
    let second = pin!(token.clone().on_stop(move |_| std::panic::panic_any(payload)));
    second.as_ref().register();
    let first = pin!(token.clone().on_stop(|_| panic!("first")));
    first.as_ref().register();
    let panic = catch_unwind(AssertUnwindSafe(|| source.request_stop(StopReason::Requested))).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"first"));
    diary.assert(&["oldest: stop requested"]);
}

#[test]
fn dropping_a_callback_waits_for_it_on_another_thread() {
    let source = StopSource::new();
    let (inside, dropping) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let ended = Arc::new(AtomicBool::new(false));
    let callback = {
        let (inside, dropping, ended) = (inside.clone(), dropping.clone(), ended.clone());
        Box::pin(source.token().on_stop(move |_| {
            inside.wait();
            // The other thread is about to drop the callback. However slow it is, the drop returns after
            // `ended`.
            dropping.wait();
            for _ in 0..100 {
                thread::yield_now();
            }
            ended.store(true, Ordering::Relaxed);
        }))
    };
    callback.as_ref().register();
    thread::scope(|scope| {
        let requester = scope.spawn(|| source.request_stop(StopReason::Requested));
        inside.wait();
        dropping.wait();
        drop(callback);
        assert!(ended.load(Ordering::Relaxed), "the drop returned while the callback ran");
        assert!(requester.join().unwrap());
    });
}

#[test]
fn dropping_another_callback_does_not_wait_for_the_one_that_runs() {
    let (source, diary) = (StopSource::new(), Diary::default());
    let token = source.token();
    let other = diary.on_stop(&token, "other");
    let (inside, dropped) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let callback = {
        let (inside, dropped) = (inside.clone(), dropped.clone());
        Box::pin(token.on_stop(move |_| {
            inside.wait();
            dropped.wait();
        }))
    };
    callback.as_ref().register();
    thread::scope(|scope| {
        scope.spawn(|| source.request_stop(StopReason::Requested));
        inside.wait();
        drop(other);
        dropped.wait();
    });
    diary.assert(&[]);
}

#[test]
fn a_callback_may_drop_itself_and_others() {
    let (source, diary) = (StopSource::new(), Diary::default());
    let token = source.token();
    let other: Holder = Arc::new(Mutex::new(Some(diary.on_stop(&token, "other"))));
    let own: Holder = Arc::default();
    let call: Call = {
        let (own, other, diary) = (own.clone(), other.clone(), diary.clone());
        Box::new(move |_| {
            drop(own.lock().unwrap().take());
            drop(other.lock().unwrap().take());
            diary.note("dropped both");
        })
    };
    let callback = Box::pin(token.on_stop(call));
    callback.as_ref().register();
    *own.lock().unwrap() = Some(callback);
    assert!(source.request_stop(StopReason::Requested));
    diary.assert(&["dropped both"]);
    assert!(own.lock().unwrap().is_none() && other.lock().unwrap().is_none());
}

#[test]
fn a_callback_registered_inside_a_callback_runs_at_once() {
    let (source, diary) = (StopSource::new(), Diary::default());
    let token = source.token();
    let holder: Holder = Arc::default();
    let _oldest = diary.on_stop(&token, "oldest");
    let callback = {
        let (token, diary, holder) = (token.clone(), diary.clone(), holder.clone());
        Box::pin(source.token().on_stop(move |_| {
            diary.note("before");
            *holder.lock().unwrap() = Some(diary.on_stop(&token, "inner"));
            diary.note("after");
        }))
    };
    callback.as_ref().register();
    source.request_stop(StopReason::Requested);
    diary.assert(&["before", "inner: stop requested", "after", "oldest: stop requested"]);
}

#[test]
fn a_callback_may_request_the_same_stop_again() {
    let source = StopSource::new();
    let again = Arc::new(AtomicUsize::new(0));
    let callback = {
        let (source, again) = (source.clone(), again.clone());
        Box::pin(source.token().on_stop(move |_| {
            again.store(1 + usize::from(source.request_stop(StopReason::Lost)), Ordering::Relaxed);
        }))
    };
    callback.as_ref().register();
    assert!(source.request_stop(StopReason::Requested));
    assert_eq!(again.load(Ordering::Relaxed), 1, "the second request is not the first");
}

#[test]
fn a_callback_may_drop_the_last_source_and_token() {
    let source = StopSource::new();
    let holder: Holder = Arc::default();
    let all: Arc<Mutex<Option<StopSource>>> = Arc::new(Mutex::new(Some(source.clone())));
    let call: Call = {
        let (holder, all) = (holder.clone(), all.clone());
        Box::new(move |_| {
            drop(holder.lock().unwrap().take());
            drop(all.lock().unwrap().take());
        })
    };
    let child = source.token().child();
    let callback = Box::pin(child.token().on_stop(call));
    callback.as_ref().register();
    drop(child);
    *holder.lock().unwrap() = Some(callback);
    assert!(source.request_stop(StopReason::Requested));
    assert!(holder.lock().unwrap().is_none() && all.lock().unwrap().is_none());
}

/// Compiles only if the type is not `Sync`: otherwise the call is ambiguous.
trait AmbiguousIfSync<A> {
    fn is_not_sync() {}
}

impl<T: ?Sized> AmbiguousIfSync<()> for T {}
impl<T: ?Sized + Sync> AmbiguousIfSync<u8> for T {}

#[test]
fn a_callback_cannot_be_shared_between_threads() {
    <StopCallback<'static, fn(StopReason)> as AmbiguousIfSync<_>>::is_not_sync();
    <OwnedStopCallback<fn(StopReason)> as AmbiguousIfSync<_>>::is_not_sync();
}

#[test]
fn neither_registering_nor_removing_nor_running_a_callback_allocates() {
    let source = StopSource::new();
    let token = source.token();
    let ran = Arc::new(AtomicBool::new(false));
    let count = allocations(|| {
        for _ in 0..10 {
            let callback = pin!(token.as_ref().on_stop(|_| ()));
            callback.as_ref().register();
        }
    });
    assert_eq!(count, 0, "registering and removing");
    let own = ran.clone();
    // The first call on a thread may allocate the thread's handle, which is not counted here.
    _ = thread::current().id();
    let count = allocations(|| {
        let callback = pin!(token.as_ref().on_stop(move |_| own.store(true, Ordering::Relaxed)));
        callback.as_ref().register();
        source.request_stop(StopReason::Requested);
    });
    assert_eq!((count, ran.load(Ordering::Relaxed)), (0, true), "running");
}

#[test]
fn a_source_in_place_allocates_only_for_an_owned_token() {
    let count = allocations(|| {
        let stop = InPlaceStop::new(None);
        // SAFETY: `stop` is a local that does not move from here on.
        let token = unsafe { stop.token() };
        let callback = pin!(token.on_stop(|_| ()));
        callback.as_ref().register();
        assert!(token.stop_possible());
    });
    assert_eq!(count, 0);
    let in_place = Box::new(InPlaceStop::new(None));
    in_place.request_stop(StopReason::Lost);
    // SAFETY: the source does not move out of its box.
    let token = unsafe { in_place.token() }.to_token();
    // SAFETY: the source does not move out of its box.
    assert_eq!(token, unsafe { in_place.token() }.to_token());
    drop(in_place);
    assert_eq!(token.reason(), Some(StopReason::Lost));
}

#[test]
fn ten_thousand_callbacks_are_removed_in_any_order() {
    let (source, ran) = (StopSource::new(), Arc::new(Mutex::new(Vec::new())));
    let mut callbacks: Vec<_> = (0..if cfg!(miri) { 40 } else { 10_000 })
        .map(|number| {
            let ran = ran.clone();
            let callback = Box::pin(source.token().on_stop(move |_| ran.lock().unwrap().push(number)));
            callback.as_ref().register();
            (number, callback)
        })
        .collect();
    let mut random = Random::new(0x5EED);
    while callbacks.len() > if cfg!(miri) { 10 } else { 100 } {
        let chosen = random.below(callbacks.len());
        drop(callbacks.swap_remove(chosen));
    }
    let mut left: Vec<usize> = callbacks.iter().map(|(number, _)| *number).collect();
    left.sort_unstable_by(|a, b| b.cmp(a));
    source.request_stop(StopReason::Requested);
    assert_eq!(*ran.lock().unwrap(), left, "the callbacks that are left run, newest first");
}

#[test]
fn callbacks_come_and_go_on_many_threads_while_a_stop_is_requested() {
    for _ in 0..if cfg!(miri) { 3 } else { 50 } {
        let source = StopSource::new();
        let (ran, started) = (Arc::new(AtomicUsize::new(0)), Barrier::new(4));
        thread::scope(|scope| {
            for _ in 0..3 {
                let (token, ran, started) = (source.token(), ran.clone(), &started);
                scope.spawn(move || {
                    started.wait();
                    let mut stopped = false;
                    while !stopped {
                        let (call, called) = mpsc::channel();
                        let ran = ran.clone();
                        let callback = pin!(token.as_ref().on_stop(move |_| {
                            ran.fetch_add(1, Ordering::Relaxed);
                            call.send(()).unwrap();
                        }));
                        callback.as_ref().register();
                        // If a stop was requested by now, the callback runs before the drop returns.
                        stopped = token.stop_requested();
                        if stopped {
                            called.recv().unwrap();
                        }
                    }
                });
            }
            started.wait();
            source.request_stop(StopReason::Requested);
        });
        assert!(ran.load(Ordering::Relaxed) >= 3);
    }
}

#[test]
fn a_panicking_callback_keeps_no_child_from_arriving() {
    use std::ptr::NonNull;

    static FINISHED: AtomicUsize = AtomicUsize::new(0);
    unsafe fn finish(children: NonNull<()>) {
        // SAFETY: the owner is the `Children` below, which have all arrived.
        let panic = unsafe { children.cast::<Children>().as_ref().take_panic() };
        FINISHED.fetch_add(1 + 10 * usize::from(panic.is_some()), Ordering::Relaxed);
    }
    for by_a_child in [false, true] {
        FINISHED.store(0, Ordering::Relaxed);
        let above = StopSource::new();
        let token = above.token();
        let children = pin!(Children::new(1));
        let owner = NonNull::from(&*children).cast();
        // SAFETY: the children are pinned, and armed once and before any of them is started. The token
        // outlives them. Both counts are given back by `arrive` below.
        unsafe {
            let stop = children.arm(token.as_ref(), owner, finish);
            children.link(token.as_ref());
            let callback = Box::pin(stop.as_ref().token().to_token().on_stop(|_| panic!("callback")));
            callback.as_ref().register();
            if by_a_child {
                children.request_stop(StopReason::Sibling);
            } else {
                let request = catch_unwind(AssertUnwindSafe(|| above.request_stop(StopReason::Requested)));
                assert!(request.is_err(), "the panic resumes at the requester");
            }
            drop(callback);
            Children::arrive(NonNull::from(&*children), owner, finish);
            assert_eq!(FINISHED.load(Ordering::Relaxed), 0);
            Children::arrive(NonNull::from(&*children), owner, finish);
        }
        assert_eq!(FINISHED.load(Ordering::Relaxed), if by_a_child { 11 } else { 1 });
    }
}
