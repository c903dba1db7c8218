//! Hooks of tasks: which calls are made, in which order, and where they are set.
use std::cell::Cell;
use std::sync::{Arc, Mutex};

use convoke::env::Changes;
use convoke::executor::{RunLoop, block_on_with};
use convoke::inspect::{HOOKS, Hooks, Spawned, TaskEnd, TaskHooks, TaskObserver};
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::forever;

/// Writes down all calls.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn changes(&self) -> Changes {
        Changes::new().local(&HOOKS, Hooks::new(self.clone()))
    }
}

struct Observer {
    name: String,
    log: Log,
}

impl TaskHooks for Log {
    fn spawned(&self, task: &Spawned<'_>) -> Option<Box<dyn TaskObserver>> {
        assert!(task.location.file().ends_with("hooks.rs"), "{}", task.location);
        let name = task.name.unwrap_or("no name").to_owned();
        self.add(format!("{name} spawned"));
        (name != "not observed").then(|| Box::new(Observer { name, log: self.clone() }) as _)
    }
}

impl TaskObserver for Observer {
    fn poll_begins(&mut self) {
        self.log.add(format!("{} {{", self.name));
    }

    fn poll_ends(&mut self) {
        self.log.add(format!("}} {}", self.name));
    }

    fn asked_to_stop(&mut self, reason: StopReason) {
        self.log.add(format!("{} asked to stop: {reason}", self.name));
    }

    fn ended(&mut self, end: TaskEnd) {
        self.log.add(format!("{} {end}", self.name));
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.log.add(format!("{} gone", self.name));
    }
}

#[test]
fn a_task_is_shown_when_it_is_spawned_polled_and_ended() {
    let log = Log::default();
    let inner = log.clone();
    let outcome = block_on_with(log.changes(), async move {
        scope(async |s| {
            let body = inner.clone();
            s.named("child").spawn(async move {
                body.add("first".to_owned());
                checkpoint().await;
                body.add("second".to_owned());
            });
        })
        .await;
    });
    assert_eq!(outcome, Outcome::Value(()));
    let expected = "no name spawned|no name {|child spawned|} no name|child {|first|} child|child {|second|} child\
                    |child returned|child gone|no name {|} no name|no name returned|no name gone";
    assert_eq!(log.take().join("|"), expected);
}

#[test]
fn a_stop_is_told_once_with_its_reason_before_the_poll_that_sees_it() {
    let log = Log::default();
    let outcome = block_on_with(log.changes(), async {
        scope(async |s| {
            let child = s.named("child").spawn_future(async {
                let clean_up = async |_| checkpoint().await;
                ensure(clean_up, async { forever().await }).await
            });
            checkpoint().await;
            child.request_stop(StopReason::Named("enough"));
            let outcome: Outcome<()> = child.outcome().await;
            outcome.is_stopped()
        })
        .await
    });
    assert_eq!(outcome, Outcome::Value(true));
    let of_child: Vec<_> = log.take().into_iter().filter(|line| line.contains("child")).collect();
    let expected = "child spawned|child {|} child|child asked to stop: enough|child {|} child|child {|} child\
                    |child was stopped|child gone";
    assert_eq!(of_child.join("|"), expected);
}

#[test]
fn the_end_of_a_task_that_panics_or_is_refused_is_told() {
    let log = Log::default();
    let outcome = block_on_with(log.changes(), async {
        scope(async |s| {
            let panics = s.named("panics").spawn_future(async { panic!("on purpose") });
            let outcome: Outcome<()> = panics.outcome().await;
            assert!(matches!(outcome, Outcome::Panicked(_)));
        })
        .await;
    });
    assert_eq!(outcome, Outcome::Value(()));
    assert!(log.take().contains(&"panics panicked".to_owned()));

    let run_loop = RunLoop::new();
    let hooks = Hooks::new(log.clone());
    let launched = launch(&run_loop.executor()).name("refused").local(&HOOKS, hooks).start(async {});
    drop(run_loop);
    assert_eq!(launched.wait(), Outcome::Stopped);
    assert_eq!(log.take(), ["refused spawned", "refused was stopped", "refused gone"]);
}

#[test]
fn every_way_to_name_a_task_is_seen() {
    let log = Log::default();
    let pool = ThreadPool::new(1).unwrap();
    let hooks = Hooks::new(log.clone());
    let launched = launch(&pool.executor()).name("root").local(&HOOKS, hooks).start(async {
        task(async {}).named("awaited").await;
        scope(async |s| {
            s.named("child").spawn(async {});
            s.child().name("with handle").spawn_future(async {}).await;
        })
        .await;
    });
    launched.wait().unwrap();
    let spawned: Vec<_> = log.take().into_iter().filter(|line| line.ends_with("spawned")).collect();
    assert_eq!(spawned, ["root spawned", "awaited spawned", "child spawned", "with handle spawned"]);
}

#[test]
fn hooks_hold_where_they_are_set_and_below() {
    let log = Log::default();
    let inner = log.clone();
    let outcome = block_on(async move {
        scope(async |s| s.named("before").spawn(async {})).await;
        let below = async {
            scope(async |s| {
                s.named("not observed").spawn(async {});
                s.named("below").spawn(async { scope(async |s| s.named("further").spawn(async {})).await });
            })
            .await;
        };
        convoke::env::with_local(&HOOKS, Hooks::new(inner), below).await;
        scope(async |s| s.named("after").spawn(async {})).await;
    });
    assert_eq!(outcome, Outcome::Value(()));
    let spawned: Vec<_> = log.take().into_iter().filter(|line| line.ends_with("spawned")).collect();
    assert_eq!(spawned, ["not observed spawned", "below spawned", "further spawned"]);
}

thread_local! {
    /// The span that this thread is in, as a tracing library has it.
    static SPAN: Cell<u32> = const { Cell::new(0) };
}

/// A span of a tracing library: entered for each poll, left after it.
struct Span {
    number: u32,
    around: u32,
}

struct Spans(Mutex<u32>);

impl TaskHooks for Spans {
    fn spawned(&self, _: &Spawned<'_>) -> Option<Box<dyn TaskObserver>> {
        let mut last = self.0.lock().unwrap();
        *last += 1;
        Some(Box::new(Span { number: *last, around: 0 }))
    }
}

impl TaskObserver for Span {
    fn poll_begins(&mut self) {
        self.around = SPAN.replace(self.number);
    }

    fn poll_ends(&mut self) {
        assert_eq!(SPAN.replace(self.around), self.number);
    }
}

#[test]
fn a_span_is_entered_for_each_poll_and_left_while_the_task_waits() {
    let hooks = Hooks::new(Spans(Mutex::new(0)));
    let outcome = block_on_with(Changes::new().local(&HOOKS, hooks), async {
        assert_eq!(SPAN.get(), 1);
        scope(async |s| {
            for number in 2..=4 {
                s.spawn(async move {
                    for _ in 0..3 {
                        assert_eq!(SPAN.get(), number);
                        checkpoint().await;
                    }
                });
            }
        })
        .await;
        SPAN.get()
    });
    assert_eq!((outcome, SPAN.get()), (Outcome::Value(1), 0));
}

/// Panics whenever it is called.
struct Panics;

impl TaskHooks for Panics {
    fn spawned(&self, task: &Spawned<'_>) -> Option<Box<dyn TaskObserver>> {
        assert!(task.name != Some("bad"), "in `spawned`, on purpose");
        Some(Box::new(Panics))
    }
}

impl TaskObserver for Panics {
    fn poll_begins(&mut self) {
        panic!("in `poll_begins`, on purpose");
    }

    fn poll_ends(&mut self) {
        panic!("in `poll_ends`, on purpose");
    }

    fn ended(&mut self, _: TaskEnd) {
        panic!("in `ended`, on purpose");
    }
}

#[test]
fn hooks_that_panic_do_not_disturb_the_task() {
    let changes = Changes::new().local(&HOOKS, Hooks::new(Panics));
    let outcome = block_on_with(changes, async {
        scope(async |s| {
            s.named("bad").spawn(async {});
            s.spawn_future(async { 42 }).await
        })
        .await
    });
    assert_eq!(outcome, Outcome::Value(42));
}

/// Uses up the memory of its environment, so that there is none for an observer.
struct Greedy(Mutex<Vec<Box<dyn std::any::Any + Send>>>);

struct PanicsWhenDropped;

impl TaskObserver for PanicsWhenDropped {}

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("an observer that is not wanted");
    }
}

impl TaskHooks for Greedy {
    fn spawned(&self, task: &Spawned<'_>) -> Option<Box<dyn TaskObserver>> {
        if task.name != Some("victim") {
            return None;
        }
        let filling = [0_u8; 32];
        while let Ok(frame) = convoke::alloc::try_frame(async move { filling.len() }) {
            self.0.lock().unwrap().push(Box::new(frame));
        }
        Some(Box::new(PanicsWhenDropped))
    }
}

/// Regression: the panic freed a task that was in the list of its scope.
#[test]
fn an_observer_without_memory_that_panics_when_it_is_dropped_leaves_its_task_alone() {
    let frames = convoke::alloc::FrameAllocator::new(convoke::alloc::Bounded::new(16 * 1024));
    let changes = Changes::new().allocator(frames).local(&HOOKS, Hooks::new(Greedy(Mutex::default())));
    let ran = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let there = ran.clone();
    let outcome = block_on_with(changes, async move {
        scope(async |s| {
            s.child().name("victim").spawn(async move {
                checkpoint().await;
                there.store(true, std::sync::atomic::Ordering::Relaxed);
            });
        })
        .await;
    });
    assert_eq!(outcome, Outcome::Value(()));
    assert!(ran.load(std::sync::atomic::Ordering::Relaxed));
}
