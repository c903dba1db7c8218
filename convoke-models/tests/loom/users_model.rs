//! A model as users of Convoke write it: through the facade, with the shim that it exports, and without a
//! loom dependency.
use std::sync::atomic::{AtomicUsize, Ordering as Seen};

use convoke::raw::sync::atomic::{AtomicUsize as Atomic, Ordering};
use convoke::raw::sync::{Arc, Mutex, model, thread};
use convoke::sender::prelude::*;
use convoke::sync::{Event, Semaphore};

/// A mailbox for one message at a time, as a user might write it.
#[derive(Default)]
struct Mailbox {
    message: Mutex<Option<u32>>,
    came: Event,
}

impl Mailbox {
    fn put(&self, message: u32) {
        *self.message.lock().unwrap() = Some(message);
        self.came.set();
    }

    async fn take(&self) -> u32 {
        loop {
            self.came.wait().await;
            self.came.reset();
            if let Some(message) = self.message.lock().unwrap().take() {
                return message;
            }
        }
    }
}

/// A count of how often something happened, over all schedules.
#[derive(Debug)]
struct Count(AtomicUsize);

impl Count {
    const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    fn here_if(&self, so: bool) {
        self.0.fetch_add(usize::from(so), Seen::Relaxed);
    }

    fn get(&self) -> usize {
        self.0.load(Seen::Relaxed)
    }
}

#[test]
fn a_message_that_is_put_while_its_receiver_begins_to_wait_is_taken() {
    static THERE: Count = Count::new();
    static AWAITED: Count = Count::new();
    model(|| {
        let mailbox = Arc::new(Mailbox::default());
        let puts = mailbox.clone();
        let other = thread::spawn(move || puts.put(7));
        let outcome = sync_wait(task(async move {
            let there = mailbox.came.is_set();
            THERE.here_if(there);
            AWAITED.here_if(!there);
            mailbox.take().await
        }));
        assert_eq!(outcome, Outcome::Value(7));
        other.join().unwrap();
    });
    assert!(THERE.get() > 0 && AWAITED.get() > 0, "{THERE:?} {AWAITED:?}");
}

/// A counter that is incremented in two steps, which are atomic under the permit.
#[derive(Default)]
struct Counter(Atomic);

impl Counter {
    fn add(&self) {
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(before + 1, Ordering::Relaxed);
    }
}

#[test]
fn two_tasks_on_two_threads_count_one_after_the_other() {
    model(|| {
        let shared = Arc::new((Semaphore::new(1), Counter::default()));
        let count = |shared: Arc<(Semaphore, Counter)>| {
            sync_wait(task(async move {
                let _permit = shared.0.acquire().await;
                shared.1.add();
            }))
        };
        let other = shared.clone();
        let other = thread::spawn(move || count(other));
        assert_eq!(count(shared.clone()), Outcome::Value(()));
        assert_eq!(other.join().unwrap(), Outcome::Value(()));
        assert_eq!(shared.1.0.load(Ordering::Relaxed), 2);
    });
}
