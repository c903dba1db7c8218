//! Senders that are awaited by hand, in ways that no `async fn` does.

use std::future::{Future, IntoFuture, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use convoke::alloc::{Counting, FrameAllocator};
use convoke::checkpoint;
use convoke::env::Changes;
use convoke::env::current;
use convoke::prelude::{ThreadPool, launch};
use convoke::sender::prelude::*;
use convoke::sender::{AwaitableSender, sync_wait, sync_wait_with};
use convoke::task::task;
use convoke_sender::testing::{Connected, Gate};

/// Polls a future once, and returns true if that panicked.
async fn panics_when_polled<F: Future>(mut future: Pin<&mut F>) -> bool {
    poll_fn(|cx| Poll::Ready(catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))).is_err())).await
}

/// Regression: the second poll stopped the task at its next await, and the result was lost.
#[test]
fn a_finished_sender_that_is_polled_again_panics_and_does_not_stop_the_task() {
    let outcome = sync_wait(task(async {
        let mut inline = pin!(just(1).into_future());
        let mut boxed = pin!(just(2).boxed().into_future());
        let sum = inline.as_mut().await + boxed.as_mut().await;
        assert!(panics_when_polled(inline.as_mut()).await);
        assert!(panics_when_polled(boxed.as_mut()).await);
        assert!(panics_when_polled(boxed.as_mut()).await);
        checkpoint().await;
        sum
    }));
    assert_eq!(outcome, Outcome::Value(3));
}

#[test]
fn a_sender_that_panicked_panics_again_when_it_is_polled_again() {
    let outcome = sync_wait(task(async {
        let mut bomb = pin!(just(1).then(|_| -> u8 { panic!("bomb") }).into_future());
        assert!(panics_when_polled(bomb.as_mut()).await);
        assert!(panics_when_polled(bomb.as_mut()).await);
        checkpoint().await;
        "continued"
    }));
    assert_eq!(outcome, Outcome::Value("continued"));
}

#[test]
fn a_stopped_sender_that_is_polled_again_passes_the_stop_on_again() {
    let outcome = sync_wait(task(async {
        let mut stopped = pin!(just_stopped::<u8>().into_future());
        assert!(!panics_when_polled(stopped.as_mut()).await);
        assert!(!panics_when_polled(stopped.as_mut()).await);
        checkpoint().await;
        unreachable!("it was stopped")
    }));
    assert_eq!(outcome, Outcome::<(), _>::Stopped);
}

/// A waker that panics on its first call, after it has passed the call on.
struct Bomb(Waker, AtomicBool);

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        self.0.wake_by_ref();
        if !self.1.swap(true, Ordering::Relaxed) {
            panic!("a waker that panics");
        }
    }
}

/// Regression: the panic unwound out of the shared work, and the consumers after this one waited forever.
#[test]
fn a_foreign_waker_that_panics_does_not_keep_others_from_a_shared_result() {
    let gate = Gate::<u32>::new();
    let split = gate.sender().split();
    let shared = split.clone();
    let awaits = task(async move {
        let mut shared = pin!(shared.into_future());
        let mut bomb = None;
        poll_fn(move |cx| {
            let bomb = bomb.get_or_insert_with(|| Arc::new(Bomb(cx.waker().clone(), AtomicBool::new(false))));
            shared.as_mut().poll(&mut Context::from_waker(&Waker::from(bomb.clone())))
        })
        .await
    });
    let first = Connected::new(awaits).start();
    let second = Connected::new(split).start();
    assert!(catch_unwind(AssertUnwindSafe(|| gate.complete(Outcome::Value(3)))).is_ok());
    assert_eq!(second.outcome(), Outcome::Value(3));
    assert_eq!(first.outcome(), Outcome::Value(3));
}

/// Once, an `async` block that awaited a sender with a reference in its types was not `Send`: the compiler said
/// that `Send` was not general enough.
#[test]
fn senders_that_carry_references_are_awaited_in_a_task_that_is_send() {
    fn sent<F: Future + Send>(future: F) -> F {
        future
    }
    let outcome = sync_wait(task(sent(async {
        let text: &'static str = just("four").await;
        let length = just(text).then(str::len).await;
        let failed = just_error::<usize, &'static str>("no").await;
        let both = when_all((just("a"), just("b"))).await;
        let kept = just("kept").let_value(|text: &'static str| just(text)).boxed().await;
        let asked = read_env(|env: &Env| env.stop().stop_requested()).await;
        (length, failed, both, kept, asked)
    })));
    assert_eq!(outcome, Outcome::Value((4, Err("no"), ("a", "b"), "kept", false)));
}

/// Each in a task of its own, as one expression: what the compiler infers from a line before must not help.
#[test]
fn one_line_of_any_algorithm_that_carries_a_reference_is_awaited_in_a_launched_task() {
    let pool = ThreadPool::new(1).unwrap();
    let executor = pool.executor();
    macro_rules! awaited {
        ($($sender:expr => $value:expr;)*) => {$(
            let outcome = launch(&executor).start(async move { $sender.await });
            assert_eq!(outcome.wait(), Outcome::Value($value), "{}", stringify!($sender));
        )*};
    }
    awaited! {
        just("a") => "a";
        just(&["a", "b"]) => &["a", "b"];
        just_from(|| "a") => "a";
        just("four").then(str::len) => 4;
        just("a").then(|text| text) => "a";
        just_error::<u8, &'static str>("no") => Err("no");
        just_error::<&'static str, _>("no").map_error(str::len) => Err(2);
        just_error::<&'static str, _>("no").upon_error(|error| error) => "no";
        just_error::<&'static str, _>("no").let_error(just) => "no";
        just("a").let_value(|text| just((text, "b"))) => ("a", "b");
        just("a").into_result() => Ok("a");
        just("a").stopped_as_option() => Some("a");
        just(Ok::<_, &'static str>("a")).transpose() => Ok("a");
        just("a").unstoppable() => "a";
        just("a").finally(just(())) => "a";
        just("a").stop_when(never::<()>()) => "a";
        just("a").boxed() => "a";
        just("a").split() => "a";
        just("a").starts_on(&executor) => "a";
        just("a").continues_on(&executor) => "a";
        just("a").on(&executor) => "a";
        just("a").affine_on(&executor) => "a";
        schedule(&executor).then(|()| "a") => "a";
        when_all((just("a"), just("b"))) => ("a", "b");
        when_all(vec![just("a"), just("b")]) => vec!["a", "b"];
        when_any((just("a"), never())) => "a";
        when_any(vec![just("a")]) => "a";
        from_callback(|completion: Completion<&'static str>| completion.value("a")) => "a";
        read_env(|env: &Env| env.stop().stop_requested()) => false;
        try_task(async { Ok::<_, &'static str>("a") }) => Ok("a");
        task(async { "a" }) => "a";
    }
}

/// Once, a group of tasks that return `Result`s could only wait for all of them.
#[test]
fn a_group_of_tasks_that_can_fail_stops_at_the_first_error() {
    let gate = Gate::<u8>::new();
    let (waits, asked) = (gate.sender(), gate.clone());
    let slow = try_task(async move { Ok::<u8, &str>(waits.into_awaited().await) });
    let fails = try_task(async { Err::<u8, &str>("first") });
    assert_eq!(sync_wait(when_all((slow, fails))), Outcome::Error("first"));
    assert_eq!(asked.asked_to_stop(), Some(StopReason::Sibling));

    let all = when_all((try_task(async { Ok::<_, &str>(1) }), try_task(async { Ok::<_, &str>(2) })));
    assert_eq!(sync_wait(all), Outcome::Value((1, 2)));
}

fn opaque() -> impl Sender<Value = &'static str, Error = Never> + 'static {
    just("value").then(|text| text)
}

fn awaitable(fails: bool) -> impl AwaitableSender<Value = &'static str, Error = String> {
    just(fails).then(|fails| if fails { Err("no".to_owned()) } else { Ok("yes") }).transpose()
}

#[test]
fn a_sender_that_a_function_returns_without_its_type_is_awaited() {
    let pool = ThreadPool::new(1).unwrap();
    // Launched, so that the future must be `Send`.
    let outcome = launch(&pool.executor()).start(async {
        let there = schedule(&current::executor());
        there.await;
        (opaque().into_awaited().await, awaitable(false).await, awaitable(true).await)
    });
    assert_eq!(outcome.wait(), Outcome::Value(("value", Ok("yes"), Err("no".to_owned()))));
}

/// Regression: the box was freed when the start of its work had returned, which may be after the end of the task.
#[test]
fn the_memory_of_a_boxed_sender_is_freed_before_its_work_starts() {
    let memory = Counting::new(FrameAllocator::system());
    let changes = || Changes::new().allocator(FrameAllocator::new(memory.clone()));
    let (env, counts) = (Env::new().with(changes()), memory.clone());
    let work = async move {
        let (before, inside) = (counts.live(), counts.clone());
        let boxed = just(()).then(move |()| inside.live()).boxed();
        assert_eq!(counts.live(), before + 1, "the box");
        (before, Connected::with_env(boxed, env).start().outcome())
    };
    let (before, inside) = sync_wait_with(changes(), task(work)).unwrap();
    assert_eq!(inside, Outcome::Value(before + 1), "the work that was in the box, and not the box");
}

/// Why an awaited sender must be `'static`: its closure runs after the future, and the block that the closure could have
/// borrowed from, are gone.
#[test]
fn an_operation_goes_on_after_the_block_that_awaited_it_is_gone() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = order.clone();
    let outcome = sync_wait(task(async move {
        let kept = Arc::new(Mutex::new(None));
        {
            let (keeps, seen) = (kept.clone(), seen.clone());
            let waits =
                from_callback(move |completion: Completion<()>| *keeps.lock().unwrap() = Some(completion));
            let runs = waits.then(move |()| seen.lock().unwrap().push("the operation runs"));
            let mut started = pin!(runs.into_future());
            let waiting = poll_fn(|cx| Poll::Ready(started.as_mut().poll(cx).is_pending())).await;
            assert!(waiting);
        }
        seen.lock().unwrap().push("the block is gone");
        let completion = kept.lock().unwrap().take().unwrap();
        completion.value(());
    }));
    assert_eq!(outcome, Outcome::Value(()));
    assert_eq!(*order.lock().unwrap(), ["the block is gone", "the operation runs"]);
}
