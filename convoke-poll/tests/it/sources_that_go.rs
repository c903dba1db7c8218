//! Sources go on other threads while the driver has events for them: it looks at none that has gone, and counts none.
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

/// Counts how often it was woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits for bytes, which are not there yet.
fn waits(source: &dyn Source, waker: &Waker) -> Ticket {
    let cx = Context::from_waker(waker);
    loop {
        match source.try_read(&mut [0]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            other => panic!("nobody has written, but {other:?}"),
        }
        if let Some(ticket) = source.watch(Interest::Read, Ticket::NONE, cx.waker()) {
            return ticket;
        }
    }
}

/// Waits for room, of which there is none.
fn waits_for_room(source: &dyn Source, waker: &Waker) {
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

/// Two ends that have events under way when they go, in the order of the round. Whoever waits says that he does not any more, or
/// does not.
fn come_and_go(driver: &PollDriver, waker: &Waker, round: usize) {
    let (near, far) = driver.pair().expect("there are descriptors");
    let ticket = waits(&*near, waker);
    // Mostly one waits for room, too, and never says that he does not any more. The event is not for him.
    if !round.is_multiple_of(5) {
        waits_for_room(&*near, waker);
    }
    far.try_write(b"an event").expect("there is room");
    if round.is_multiple_of(2) {
        drop(far);
    }
    if round.is_multiple_of(3) {
        near.unwatch(Interest::Read, ticket);
    }
    drop(near);
}

#[test]
fn sources_go_while_there_are_events_for_them() {
    for make in FORMS {
        let driver = make().expect("a driver can be made");
        let (bell, working) = (Arc::new(Bell::default()), AtomicUsize::new(THREADS));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let waker = Waker::from(bell.clone());
                    (0..ROUNDS).for_each(|round| come_and_go(&driver, &waker, round));
                    working.fetch_sub(1, Ordering::Release);
                    driver.wake();
                });
            }
            while working.load(Ordering::Acquire) > 0 {
                driver.wait(None).expect("the kernel can be waited for");
            }
        });
        assert_eq!(driver.in_flight(), 0);
        // Each was woken once: by its event, or because its socket went; except those who had said that they wait no longer.
        let (woken, all) = (bell.0.load(Ordering::Relaxed), THREADS * (2 * ROUNDS - ROUNDS.div_ceil(5)));
        assert!((all - THREADS * ROUNDS.div_ceil(3)..=all).contains(&woken), "{woken} of {all} were woken");
    }
}

#[test]
fn the_end_of_the_driver_meets_sources_that_go() {
    for make in FORMS {
        for _ in 0..20 {
            let driver = make().expect("a driver can be made");
            let bell = Arc::new(Bell::default());
            let waker = Waker::from(bell.clone());
            let pairs = [(); 8].map(|()| driver.pair().expect("there are descriptors"));
            for (near, _) in &pairs {
                waits(&**near, &waker);
            }
            thread::scope(|scope| {
                scope.spawn(|| drop(pairs));
                driver.shut_down();
            });
            assert_eq!((driver.in_flight(), bell.0.load(Ordering::Relaxed)), (0, 8));
        }
    }
}
