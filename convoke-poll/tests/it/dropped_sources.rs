//! Sources are dropped on other threads while the driver has events for them: the driver accesses none that
//! was dropped, and counts none.
#![cfg(unix)]

use core::task::{Context, Waker};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;
use std::thread;

use convoke_io::driver::{Driver, Interest, Source, Ticket};
use convoke_poll::PollDriver;

const THREADS: usize = 4;
const ROUNDS: usize = 250;

const FORMS: [fn() -> io::Result<PollDriver>; 3] =
    [PollDriver::new, PollDriver::portable, PollDriver::portable_without_edges];

/// A waker that counts its wake-ups.
#[derive(Default)]
struct CountingWaker(AtomicUsize);

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits for bytes that were not written yet.
fn watch_read(source: &dyn Source, waker: &Waker) -> Ticket {
    let cx = Context::from_waker(waker);
    loop {
        match source.try_read(&mut [0]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            other => panic!("nothing was written, but {other:?}"),
        }
        if let Some(ticket) = source.watch(Interest::Read, Ticket::NONE, cx.waker()) {
            return ticket;
        }
    }
}

/// Waits for space to write, of which there is none.
fn watch_write(source: &dyn Source, waker: &Waker) {
    loop {
        match source.try_write(&[0; 1 << 16]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(_) => continue,
            Err(error) => panic!("{error}"),
        }
        if source.watch(Interest::Write, Ticket::NONE, waker).is_some() {
            return;
        }
    }
}

/// Drops both ends of a pair that has pending events, in an order that depends on the round. The reader
/// withdraws its watcher in some rounds.
fn create_and_drop(driver: &PollDriver, waker: &Waker, round: usize) {
    let (near, far) = driver.pair().expect("there are descriptors");
    let ticket = watch_read(&*near, waker);
    // Mostly there is a writer too, which never withdraws its watcher. The event does not wake it.
    if !round.is_multiple_of(5) {
        watch_write(&*near, waker);
    }
    far.try_write(b"an event").expect("it fits");
    if round.is_multiple_of(2) {
        drop(far);
    }
    if round.is_multiple_of(3) {
        near.unwatch(Interest::Read, ticket);
    }
    drop(near);
}

#[test]
fn sources_are_dropped_while_they_have_events() {
    for make in FORMS {
        let driver = make().expect("a driver can be created");
        let (counter, working) = (Arc::new(CountingWaker::default()), AtomicUsize::new(THREADS));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let waker = Waker::from(counter.clone());
                    (0..ROUNDS).for_each(|round| create_and_drop(&driver, &waker, round));
                    working.fetch_sub(1, Ordering::Release);
                    driver.wake();
                });
            }
            while working.load(Ordering::Acquire) > 0 {
                driver.wait(None).expect("the driver can wait");
            }
        });
        assert_eq!(driver.in_flight(), 0);
        // Each watcher was woken once: by its event, or by the drop of its socket. Withdrawn watchers may not
        // be.
        let (woken, all) = (counter.0.load(Ordering::Relaxed), THREADS * (2 * ROUNDS - ROUNDS.div_ceil(5)));
        assert!((all - THREADS * ROUNDS.div_ceil(3)..=all).contains(&woken), "{woken} of {all} were woken");
    }
}

#[test]
fn the_driver_shuts_down_while_sources_are_dropped() {
    for make in FORMS {
        for _ in 0..20 {
            let driver = make().expect("a driver can be created");
            let counter = Arc::new(CountingWaker::default());
            let waker = Waker::from(counter.clone());
            let pairs = [(); 8].map(|()| driver.pair().expect("there are descriptors"));
            for (near, _) in &pairs {
                watch_read(&**near, &waker);
            }
            thread::scope(|scope| {
                scope.spawn(|| drop(pairs));
                driver.shut_down();
            });
            assert_eq!((driver.in_flight(), counter.0.load(Ordering::Relaxed)), (0, 8));
        }
    }
}
