//! A trace of all tasks, indented by who spawned whom: by hooks, which are set where the work is launched and inherited by
//! everything below. An observer lies beside each task; here it holds what a tracing library calls a span, which is entered
//! before each poll and left after it.
//!
//! ```text
//! cargo run --release --example task_trace
//! ```

use std::cell::Cell;
use std::time::Duration;

use convoke::env::with_local;
use convoke::inspect::{HOOKS, Hooks, Spawned, TaskEnd, TaskHooks, TaskObserver};
use convoke::prelude::*;

thread_local! {
    /// The depth of the task that this thread polls.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Hooks that write what tasks do.
#[derive(Debug)]
pub struct Trace<W>(pub W);

/// The span of one task.
struct Span<W> {
    name: String,
    depth: usize,
    /// The depth to return to after a poll.
    around: usize,
    polls: usize,
    write: W,
}

impl<W: Fn(String) + Clone + Send + Sync + 'static> TaskHooks for Trace<W> {
    fn spawned(&self, task: &Spawned<'_>) -> Option<Box<dyn TaskObserver>> {
        let name = task.name.map_or_else(|| format!("line {}", task.location.line()), str::to_owned);
        let depth = DEPTH.get();
        let span = Span { name, depth: depth + 1, around: 0, polls: 0, write: self.0.clone() };
        span.say(depth, "is spawned");
        Some(Box::new(span))
    }
}

impl<W: Fn(String)> Span<W> {
    fn say(&self, depth: usize, what: &str) {
        (self.write)(format!("{:width$}{} {what}", "", self.name, width = 2 * depth));
    }
}

impl<W: Fn(String) + Send> TaskObserver for Span<W> {
    fn poll_begins(&mut self) {
        self.around = DEPTH.replace(self.depth);
        self.polls += 1;
    }

    fn poll_ends(&mut self) {
        DEPTH.set(self.around);
    }

    fn asked_to_stop(&mut self, reason: StopReason) {
        self.say(self.depth, &format!("is asked to stop: {reason}"));
    }

    fn ended(&mut self, end: TaskEnd) {
        self.say(self.depth, &format!("{end} after {} polls", self.polls));
    }
}

/// A server with two connections, of which one takes too long.
pub async fn program() {
    scope(async |s| {
        for (name, time) in [("quick", 1), ("slow", 3_600_000)] {
            let reader = s.named(name).spawn_future(async move {
                scope(async |s| {
                    s.named("reader").spawn(async move { sleep(Duration::from_millis(time)).await });
                })
                .await;
            });
            let _ = timeout(Duration::from_millis(20), reader).await;
        }
    })
    .await;
}

fn main() {
    let hooks = Hooks::new(Trace(|line| println!("{line}")));
    let ended = block_on(async { with_local(&HOOKS, hooks, program()).await });
    println!("the program ended: {}", if ended.is_value() { "by itself" } else { "stopped" });
}
