//! The lateness of a ticker beside a busy neighbour on the same thread: what a budget is for.
//!
//! The neighbour awaits, again and again, something that is ready at once. A runtime that never interrupts it
//! lets the ticker wait until the neighbour ends by itself, after [`PATIENCE`]. The cost of an op is not its
//! time: it is the time from the moment at which a tick was due to the one at which the ticker ran.

mod on_convoke;
mod on_tokio;

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::{CONVOKE, Late, Scenario, Unit};

/// The number of ticks of a sample.
const TICKS: u64 = if cfg!(test) { 3 } else { 50 };

/// The time from one tick to the next.
const PERIOD: Duration = Duration::from_millis(1);

/// The time after which a neighbour ends by itself: three times that of all ticks.
const PATIENCE: Duration = Duration::from_millis(3 * TICKS);

/// The period of the busy interval, and the work of each of its ticks, which takes longer.
const INTERVAL: Duration = Duration::from_micros(50);
const WORK: Duration = Duration::from_micros(75);

/// The capacity of the channel, and the number of items that are mapped at the same time.
const AT_ONCE: usize = 16;

/// A neighbour that is busy until it is told to end.
type Neighbour = Pin<Box<dyn Future<Output = ()>>>;
type Make = fn(End) -> Neighbour;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        beside(
            "fairness_channel",
            "a full channel that is sent to and received from",
            on_convoke::channel,
            on_tokio::channel,
        ),
        beside(
            "fairness_lock",
            "a free lock that is taken again and again",
            on_convoke::lock,
            on_tokio::lock,
        ),
        beside("fairness_permits", "a semaphore with permits left", on_convoke::permits, on_tokio::permits),
        beside(
            "fairness_interval",
            "an interval whose work takes longer than its period",
            on_convoke::interval,
            on_tokio::interval,
        ),
        beside(
            "fairness_socket",
            "a datagram socket that sends to itself",
            on_convoke::socket,
            on_tokio::socket,
        ),
        beside(
            "fairness_generator",
            "a generator that always has an item",
            on_convoke::generator,
            on_tokio::generator,
        ),
        beside(
            "fairness_map",
            "a concurrent map of a function that never waits",
            on_convoke::map,
            on_tokio::map,
        ),
    ]
}

fn beside(name: &'static str, about: &'static str, convoke: Make, tokio: Make) -> Scenario {
    Scenario::new(name, about)
        .batch(TICKS)
        .unit(Unit::Late)
        .contestant(CONVOKE, move || move |ops| Late(on_convoke::run(ops, convoke)))
        .contestant("tokio", move || move |ops| Late(on_tokio::run(ops, tokio)))
}

/// The end of a neighbour: the last tick, or the end of its patience.
#[derive(Clone)]
struct End {
    last_tick: Rc<Cell<bool>>,
    latest: Instant,
    looks: Cell<u32>,
}

impl End {
    fn new() -> Self {
        Self { last_tick: Rc::default(), latest: Instant::now() + PATIENCE, looks: Cell::new(0) }
    }

    /// Tells the neighbour to end.
    fn tell(&self) {
        self.last_tick.set(true);
    }

    /// Returns true if the neighbour is to end. Reads the clock only now and then.
    fn has_come(&self) -> bool {
        self.looks.set(self.looks.get().wrapping_add(1));
        self.last_tick.get() || (self.looks.get().is_multiple_of(64) && Instant::now() >= self.latest)
    }
}

/// Computes for the duration of one piece of [`WORK`].
fn work() {
    let until = Instant::now() + WORK;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// Ticks, and returns how late all ticks were together. `sleep` waits for a duration.
async fn tick<F: Future>(ops: u64, sleep: fn(Duration) -> F) -> Duration {
    let mut late = Duration::ZERO;
    for _ in 0..ops {
        let due = Instant::now() + PERIOD;
        sleep(PERIOD).await;
        late += Instant::now().saturating_duration_since(due);
    }
    late
}
