//! The closures and resources that a program hands to us: clean-up, schedules, what is drawn by chance, hooks. They may panic, come
//! back, and never end. Clean-up of others runs nevertheless, and no panic is lost.
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use convoke::alloc::frame_dyn;
use convoke::cleanup::{cleanups, set_cleanup_hook};
use convoke::env::Changes;
use convoke::env::chance::{CHANCE, Chance, random};
use convoke::prelude::*;
use convoke::retry::{Backoff, repeat, retry, retry_if};
use convoke::scope::policy::Supervise;
use convoke::scope::scope_with;
use convoke::sender::prelude::*;
use convoke::task::{forever, stopped};
use convoke::{Never, Panic, ensure};

/// Runs a program to its end; the error is the words of the panic that came out of it.
fn run<T: Send + 'static>(program: impl Future<Output = T> + Send + 'static) -> Result<Outcome<T>, String> {
    Panic::catch(|| sync_wait(task(program))).map_err(|panic| panic.message().to_owned())
}

#[track_caller]
fn assert_panicked<T: std::fmt::Debug>(ran: Result<Outcome<T>, String>, words: &str) {
    let panic = ran.expect_err("the panic was lost");
    assert!(panic.contains(words), "{panic}");
}

/// How a resource closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closes {
    Well,
    Panics,
    PanicsLater,
    PanicsWhenDropped,
    Never,
    Stops,
    ComesBack,
}

/// A resource that counts how often it was closed.
struct Resource(Closes, Arc<AtomicUsize>);

impl Drop for Resource {
    fn drop(&mut self) {
        assert!(
            self.0 != Closes::PanicsWhenDropped || std::thread::panicking(),
            "lawless {:?}",
            Closes::PanicsWhenDropped
        );
    }
}

impl AsyncClose for Resource {
    type Error = Never;

    async fn close(self, _: convoke::Exit) -> Result<(), Never> {
        self.1.fetch_add(1, Ordering::Relaxed);
        match self.0 {
            Closes::Well | Closes::PanicsWhenDropped => {}
            Closes::Panics => panic!("lawless Panics"),
            Closes::PanicsLater => {
                checkpoint().await;
                panic!("lawless PanicsLater");
            }
            Closes::Never => forever().await,
            Closes::Stops => stopped().await,
            Closes::ComesBack => {
                let inner = Self(Closes::Well, self.1.clone());
                frame_dyn(using(inner, async |_resource| checkpoint().await)).await;
            }
        }
        Ok(())
    }
}

/// A lawless resource between two lawful ones. All are closed, and what came of it is told.
#[test]
fn resources_that_close_in_a_lawless_way_do_not_keep_others_from_closing() {
    use Closes::{ComesBack, Never, Panics, PanicsLater, PanicsWhenDropped, Stops, Well};
    for closes in [Well, Panics, PanicsLater, PanicsWhenDropped, Never, Stops, ComesBack] {
        for body_panics in [false, true] {
            let closed = Arc::new(AtomicUsize::new(0));
            let count = closed.clone();
            let ran = run(async move {
                let resource = |closes| Resource(closes, count.clone());
                let outer = using(resource(Well), async |_outer| {
                    let middle = using(resource(closes), async |_middle| {
                        using(resource(Well), async |_inner| {
                            checkpoint().await;
                            assert!(!body_panics, "lawless body");
                        })
                        .await;
                    });
                    // Only the one that never ends by itself is asked to stop in the end: the others may take as long as they like.
                    let grace = if closes == Never { Duration::from_millis(1) } else { Duration::MAX };
                    middle.grace(grace).await;
                });
                outer.await;
            });
            let count = closed.load(Ordering::Relaxed);
            assert_eq!(count, if closes == ComesBack { 4 } else { 3 }, "{closes:?}");
            match closes {
                _ if body_panics => assert_panicked(ran, "lawless body"),
                Panics | PanicsLater | PanicsWhenDropped => assert_panicked(ran, "lawless Panics"),
                _ => assert!(ran.is_ok(), "{closes:?}: {ran:?}"),
            }
        }
    }
}

#[test]
fn a_stack_of_lawless_clean_ups_is_run_to_its_end() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let notes = order.clone();
    let ran = run(async move {
        cleanups::<Never, _, _, _>(async |stack| {
            for n in 0..4 {
                let notes = notes.clone();
                stack.ensure(async move |_| {
                    notes.lock().unwrap_or_else(PoisonError::into_inner).push(n);
                    assert!(n % 2 == 0, "lawless clean-up {n}");
                });
            }
            checkpoint().await;
            Ok(())
        })
        .await
    });
    assert_panicked(ran, "lawless clean-up 3");
    assert_eq!(*order.lock().unwrap(), [3, 2, 1, 0]);
}

/// The hook may panic, and come back into what it is told of.
#[test]
fn a_clean_up_hook_that_panics_or_comes_back_ends_nothing() {
    let told = Arc::new(AtomicUsize::new(0));
    for panics in [true, false] {
        let count = told.clone();
        set_cleanup_hook(move |_| {
            if count.fetch_add(1, Ordering::Relaxed) < 2 {
                let _ = run(async { drop_in_flight().await });
            }
            assert!(!panics, "lawless hook");
        });
        assert!(run(async { drop_in_flight().await }).is_ok());
    }
    assert!(told.load(Ordering::Relaxed) > 2);
    set_cleanup_hook(|problem| eprintln!("{problem}"));
}

/// Drops a clean-up before its body has ended: the hook is told.
async fn drop_in_flight() {
    let mut ensured = Box::pin(ensure(async |_| (), async { pending::<()>().await }));
    std::future::poll_fn(|cx| std::task::Poll::Ready(ensured.as_mut().poll(cx).is_pending())).await;
    drop(ensured);
}

#[test]
fn schedules_and_attempts_may_panic() {
    let panics = || std::iter::once_with(|| panic!("lawless schedule"));
    assert_panicked(run(async move { retry(panics(), async || Err::<(), _>(1)).await }), "lawless schedule");
    assert_panicked(run(async move { repeat(panics(), async || ()).await }), "lawless schedule");
    let none = Backoff::constant(Duration::ZERO);
    assert_panicked(
        run(async move { retry_if(none, |_| panic!("lawless again"), async || Err::<(), _>(1)).await }),
        "lawless again",
    );
    let made = || -> std::future::Ready<Result<(), u32>> { panic!("lawless attempt") };
    assert_panicked(run(async move { retry(none, made).await }), "lawless attempt");
}

#[test]
fn schedules_without_end_or_with_waits_that_have_none_can_be_stopped() {
    let longest = Backoff::exponential(Duration::MAX).jitter(1.0).seed(1);
    let ran = run(async move {
        scope(async |s| {
            s.spawn(async move {
                let _ = retry(longest, async || Err::<(), _>(1)).await;
            });
            // Without a length: they let others run in between.
            s.spawn(async { _ = retry(std::iter::repeat(Duration::ZERO), async || Err::<(), _>(1)).await });
            s.spawn(async { repeat(std::iter::repeat(Duration::ZERO), async || ()).await });
            s.spawn(async {
                scope_with::<_, (), _, _, _>(Supervise, async |s| {
                    s.child().restart(Backoff::constant(Duration::ZERO)).spawn(|| async { Err(1) });
                })
                .await;
            });
            for _ in 0..8 {
                checkpoint().await;
            }
            s.request_stop(StopReason::Requested);
        })
        .await;
    });
    assert_eq!(ran, Ok(Outcome::Value(())));
}

#[test]
fn chance_that_panics_or_asks_itself_is_the_programs_own() {
    let panics = Chance::new(|| panic!("lawless chance"));
    let changes = Changes::new().local(&CHANCE, panics);
    let ran = Panic::catch(|| sync_wait_with(changes, task(async { random() })));
    assert!(ran.is_err());
    let depth = Arc::new(AtomicUsize::new(0));
    let asks = Chance::new(move || if depth.fetch_add(1, Ordering::Relaxed) < 9 { random() } else { 7 });
    let changes = Changes::new().local(&CHANCE, asks);
    assert_eq!(sync_wait_with(changes, task(async { random() })), Outcome::Value(7));
}
