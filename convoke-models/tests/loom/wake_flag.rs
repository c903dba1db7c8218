//! Models of a driver's wake flag: a thread spins and then sleeps, while others wake it and other events end its
//! sleep.
use crate::model::{Reached, explore};
use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_core::raw::sync::{Arc, Condvar, Mutex, thread};
use convoke_poll::wake_flag::WakeFlag;

/// Events of a kernel, each reported once.
#[derive(Default)]
struct Kernel {
    edges: Mutex<usize>,
    some: Condvar,
}

impl Kernel {
    fn say(&self) {
        *self.edges.lock().unwrap() += 1;
        self.some.notify_one();
    }

    /// Returns true if an event was pending.
    fn look(&self) -> bool {
        core::mem::take(&mut *self.edges.lock().unwrap()) > 0
    }

    fn sleep(&self) {
        let mut edges = self.edges.lock().unwrap();
        while core::mem::take(&mut *edges) == 0 {
            edges = self.some.wait(edges).unwrap();
        }
    }
}

#[derive(Default)]
struct Driver {
    kernel: Kernel,
    wake_flag: WakeFlag,
    /// Number of pieces of work posted and not taken.
    work: AtomicUsize,
}

impl Driver {
    /// Posts one piece of work and wakes the driver. Returns true if that took a system call.
    fn post(&self) -> bool {
        self.work.fetch_add(1, Ordering::Relaxed);
        let wakes = self.wake_flag.set();
        if wakes {
            self.kernel.say();
        }
        wakes
    }

    /// Spins once and then sleeps, until `work` pieces have arrived. Returns the number of sleeps.
    fn run(&self, work: usize) -> usize {
        let mut slept = 0;
        while self.work.load(Ordering::Relaxed) < work {
            if !self.kernel.look() {
                self.wake_flag.clear();
                self.kernel.sleep();
                slept += 1;
            }
            self.wake_flag.clear();
        }
        slept
    }
}

#[test]
fn what_was_done_before_a_wake_is_seen_after_the_wait() {
    static SLEPT: Reached = Reached::new();
    static LOOKED: Reached = Reached::new();
    static SHARED: Reached = Reached::new();
    explore(3, || {
        let driver = Arc::new(Driver::default());
        let posters = [(); 2].map(|()| {
            let driver = driver.clone();
            thread::spawn(move || driver.post())
        });
        // If a wake were lost, this would sleep forever, and loom would report a deadlock.
        let slept = driver.run(2);
        let wakes = posters.map(|poster| poster.join().unwrap());
        SLEPT.here_if(slept > 0);
        LOOKED.here_if(slept == 0);
        SHARED.here_if(wakes.contains(&false));
    });
    SLEPT.assert("it has slept");
    LOOKED.assert("looking was enough");
    SHARED.assert("one has rung for both");
}

#[test]
fn a_wait_that_ends_for_another_reason_ignores_later_wakes() {
    static BOTH: Reached = Reached::new();
    static ONE: Reached = Reached::new();
    explore(2, || {
        let driver = Arc::new(Driver::default());
        let event = {
            let driver = driver.clone();
            thread::spawn(move || driver.kernel.say())
        };
        let poster = {
            let driver = driver.clone();
            thread::spawn(move || [driver.post(), driver.post()])
        };
        driver.run(2);
        event.join().unwrap();
        let wakes = poster.join().unwrap();
        BOTH.here_if(wakes == [true, true]);
        ONE.here_if(wakes == [true, false]);
    });
    BOTH.assert("it was answered in between");
    ONE.assert("it was not");
}
