//! The tree of tasks: parents, names, waits.
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use convoke::env::Changes;
use convoke::executor::RunLoop;
use convoke::inspect::tree;
use convoke::inspect::{TaskNode, TaskState};
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::sync::Event;
use convoke::task::forever;

/// Returns the subtree of a task without locations: names, states, stop requests.
fn outline(node: TaskNode<'_>) -> Vec<String> {
    let lines = node.to_string();
    lines
        .lines()
        .map(|line| {
            let (before, after) = line.split_once(" (").unwrap();
            let (_, after) = after.split_once(") ").unwrap();
            let after = after.replace(", and was asked to stop", " S");
            format!("{before} {}", if after.starts_with("waits at") { "waits" } else { &after })
        })
        .collect()
}

#[test]
fn a_task_is_in_the_tree_while_it_is_alive() {
    let outcome = sync_wait(task(async { tree().find("alive").map(|node| node.state()) }).named("alive"));
    assert_eq!(outcome, Outcome::Value(Some(TaskState::Running)));
    assert!(tree().find("alive").is_none());
}

#[test]
fn children_hang_under_the_task_that_opened_the_scope_the_oldest_first() {
    let outcome = sync_wait(
        task(async {
            scope(async |s| {
                let handles: Vec<_> = (0..3)
                    .map(|n| s.named(format!("child {n}")).spawn_future(async { never::<()>().await }))
                    .collect();
                let nested = s.named("nested").spawn_future(async {
                    scope(async |s| {
                        s.named("inner").spawn(async { never::<()>().await });
                        never::<()>().await
                    })
                    .await
                });
                s.child().local().spawn(async {
                    for _ in 0..3 {
                        checkpoint().await;
                    }
                });
                checkpoint().await;
                checkpoint().await;
                let outline = outline(tree().find("ordered").unwrap());
                drop((handles, nested));
                outline
            })
            .await
        })
        .named("ordered"),
    );
    assert_eq!(
        outcome.unwrap(),
        [
            "`ordered` is running",
            "├─ `child 0` waits",
            "├─ `child 1` waits",
            "├─ `child 2` waits",
            "├─ `nested` waits",
            "│  └─ `inner` waits",
            "└─ task is queued",
        ]
    );
}

#[test]
fn a_task_with_a_scope_waits_where_the_body_does_and_then_at_the_scope() {
    let event = Arc::new(Event::new());
    let wakes = event.clone();
    let waits_in = || match tree().find("has a scope").unwrap().state() {
        TaskState::Waits(Some(place)) => place.line(),
        state => panic!("{state:?}"),
    };
    let outcome = sync_wait(task(async move {
        scope(async |s| {
            s.named("has a scope").spawn(async move {
                scope(async |s| {
                    s.spawn(async { forever().await });
                    event.wait().await;
                })
                .await;
            });
            for _ in 0..3 {
                checkpoint().await;
            }
            let body = waits_in();
            wakes.set();
            for _ in 0..3 {
                checkpoint().await;
            }
            let children = waits_in();
            s.request_stop(StopReason::Requested);
            (body, children)
        })
        .await
    }));
    let (body, children) = outcome.unwrap();
    assert_eq!(body, children + 2, "first where it waits for the event, and then where the scope was opened");
}

#[test]
fn a_task_says_where_it_was_started_and_where_it_waits() {
    let outcome = sync_wait(
        task(async {
            scope(async |s| {
                let handle = s.named("waits here").spawn_future(async { never::<()>().await });
                let line = Location::caller().line() - 1;
                checkpoint().await;
                let tree = tree();
                let node = tree.find("waits here").unwrap();
                let TaskState::Waits(Some(waits)) = node.state() else { panic!("{node}") };
                drop(handle);
                (node.location().line(), waits.line(), waits.file() == file!(), line)
            })
            .await
        })
        .named("root of it"),
    );
    let (started, waits, this_file, line) = outcome.unwrap();
    assert_eq!((started, waits, this_file), (line, line, true));
}

#[test]
fn those_that_were_asked_to_stop_stay_in_order_and_say_so() {
    let source = StopSource::new();
    let outcome = sync_wait_with(
        Changes::new().stop_token(source.token()),
        task(async move {
            let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
            let sees = seen.clone();
            let stopped = catch_stopped(scope(async |s| {
                for n in 0..3 {
                    s.named(format!("asked {n}")).spawn(async { never::<()>().await });
                }
                let late = s.clone();
                s.named("asks").spawn(async move {
                    // Reads the tree after the request, in a destructor, when all were requested to stop and
                    // none has ended.
                    let _looks = Looks(Some(Box::new(move || {
                        late.named("late").spawn(async {});
                        late.named("later").spawn(async {});
                        *sees.lock().unwrap() = outline(tree().find("asked").unwrap());
                    })));
                    never::<()>().await;
                });
                checkpoint().await;
                source.request_stop(StopReason::Requested);
                never::<()>().await
            }))
            .await;
            assert!(stopped.is_err());
            Arc::into_inner(seen).unwrap().into_inner().unwrap()
        })
        .named("asked"),
    );
    let Outcome::Value(lines) = outcome else { panic!("{outcome:?}") };
    let asked: Vec<_> =
        lines.iter().skip(1).map(|line| line.trim_start_matches(['├', '└', '─', ' '])).collect();
    assert_eq!(asked.iter().filter(|line| line.ends_with(" S")).count(), asked.len(), "{asked:?}");
    let names: Vec<_> = asked.iter().map(|line| line.split('`').nth(1).unwrap()).collect();
    assert!(
        names.is_sorted_by_key(|name| ["asked 0", "asked 1", "asked 2", "asks", "late", "later"]
            .iter()
            .position(|known| known == name)
            .unwrap()),
        "{names:?}"
    );
    assert!(names.ends_with(&["asks", "late", "later"]), "{names:?}");
}

struct Looks(Option<Box<dyn FnOnce() + Send>>);

impl Drop for Looks {
    fn drop(&mut self) {
        if let Some(look) = self.0.take() {
            look();
        }
    }
}

#[test]
fn a_task_that_waits_for_a_foreign_future_says_how_to_find_the_place() {
    let outcome = block_on(async {
        scope(async |s| {
            let bare = s.named("bare").spawn_future(async { std::future::pending::<()>().await });
            let wrapped = async { convoke::task::stoppable(std::future::pending::<()>()).await };
            let wrapped = s.named("wrapped").spawn_future(wrapped);
            checkpoint().await;
            let tree = tree();
            let says = ["bare", "wrapped"].map(|name| tree.find(name).unwrap().to_string());
            drop((bare, wrapped));
            says
        })
        .await
    });
    let [bare, wrapped] = outcome.unwrap();
    assert!(
        bare.contains("waits for a future of another crate; `stoppable(…)` around it shows where"),
        "{bare}"
    );
    assert!(wrapped.contains(&format!("waits at {}", file!())), "{wrapped}");
}

#[test]
fn a_task_that_is_awaited_hangs_under_the_one_that_awaits_it() {
    let outcome = sync_wait(
        task(async { task(async { outline(tree().find("outer").unwrap()) }).named("awaited").await })
            .named("outer"),
    );
    let lines = outcome.unwrap();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[1], "└─ `awaited` is running");
}

#[test]
fn children_on_another_executor_hang_where_they_were_started() {
    let pool = ThreadPool::new(1).unwrap();
    let executor = pool.executor();
    let outcome = sync_wait(
        task(async move {
            scope(async |s| {
                let (sent, seen) = std::sync::mpsc::channel();
                s.named("elsewhere").on(&executor).spawn(async move {
                    sent.send(tree().find("elsewhere").map(|node| (node.depth(), node.state()))).unwrap();
                });
                seen.recv().unwrap()
            })
            .await
        })
        .named("here"),
    );
    assert_eq!(outcome.unwrap(), Some((1, TaskState::Running)));
}

#[test]
fn a_counting_scope_that_is_dropped_with_tasks_in_it_shows_what_they_wait_for() {
    let run_loop = RunLoop::new();
    let env = Env::new().with(Changes::new().executor(run_loop.executor()));
    let counting = CountingScope::new();
    counting.spawn(task(async { never::<()>().await }).named("left alone"), &env).unwrap();
    run_loop.run_ready();
    let panic = Panic::catch(|| drop(counting)).unwrap_err();
    let says = panic.message();
    assert!(says.contains("dropped with 1 piece of work"), "{says}");
    let line = says.lines().find(|line| line.contains("`left alone`")).unwrap();
    assert!(line.contains(&format!("waits at {}", file!())), "{says}");
    run_loop.run_ready();
    assert!(tree().find("left alone").is_none(), "it was asked to stop");
}

#[test]
fn one_may_look_while_tasks_come_and_go_on_all_threads() {
    const BUSY: usize = if cfg!(miri) { 2 } else { 8 };
    let pool = ThreadPool::new(2).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let looked = Arc::new(AtomicUsize::new(0));
    let watcher = std::thread::spawn({
        let (over, looked) = (over.clone(), looked.clone());
        move || {
            let mut most = 0;
            while !over.load(Ordering::Acquire) {
                let tree = tree();
                most = most.max(tree.len());
                assert_eq!(tree.tasks().count(), tree.len());
                assert_eq!(tree.to_string().lines().count(), tree.len().max(1));
                looked.fetch_add(1, Ordering::Release);
            }
            most
        }
    });
    let looks = looked.clone();
    let outcome = sync_wait(
        task(async move {
            scope(async |s| {
                let enough = Arc::new(AtomicUsize::new(usize::MAX));
                for _ in 0..BUSY {
                    let (looks, enough) = (looks.clone(), enough.clone());
                    s.named("busy").spawn(async move {
                        while looks.load(Ordering::Acquire) < enough.load(Ordering::Acquire) {
                            scope(async |s| {
                                for n in 0..5 {
                                    s.named("named").spawn(async { checkpoint().await });
                                    s.spawn(async { checkpoint().await });
                                    if n == 3 {
                                        drop(s.spawn_future(async { tree().len() }));
                                    }
                                }
                                task(async {}).await;
                            })
                            .await;
                        }
                    });
                }
                // Starts now, when all tasks exist.
                enough.store(
                    looks.load(Ordering::Acquire) + if cfg!(miri) { 3 } else { 2000 },
                    Ordering::Release,
                );
            })
            .await
        })
        .starts_on(&pool.executor()),
    );
    over.store(true, Ordering::Release);
    assert_eq!(outcome, Outcome::Value(()));
    assert!(watcher.join().unwrap() > BUSY, "it has seen some of them");
}

#[test]
fn scopes_that_were_opened_beside_each_other_are_freed_on_several_threads() {
    // Only Miri sees the bug here: a neighbour in the list writes to an entry that is being dropped.
    let rounds = if cfg!(miri) { 6 } else { 50 };
    for _ in 0..rounds {
        let opened = sync_wait(task(async {
            let mut opened = Vec::new();
            for _ in 0..4 {
                scope(async |s: convoke::Scope<()>| opened.push(s.clone())).await;
            }
            opened
        }));
        let start = Arc::new(std::sync::Barrier::new(4));
        let threads: Vec<_> = opened
            .unwrap()
            .into_iter()
            .map(|scope| {
                let start = start.clone();
                std::thread::spawn(move || {
                    start.wait();
                    drop(scope);
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
