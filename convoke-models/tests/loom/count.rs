//! Models of the count of waiters: a context that was told that there are some, and sleeps, is woken when the
//! last one has left.
use crate::model::{Reached, explore};
use convoke_core::raw::sync::{Arc, Condvar, Mutex, thread};
use convoke_poll::count::Count;

/// A driver without events: its wait ends when it is woken.
#[derive(Default)]
struct Driver {
    count: Count,
    flag: Mutex<bool>,
    raised: Condvar,
}

impl Driver {
    fn leave(&self) -> bool {
        let wakes = self.count.subtract(1);
        if wakes {
            *self.flag.lock().unwrap() = true;
            self.raised.notify_one();
        }
        wakes
    }

    fn wait(&self) {
        let mut flag = self.flag.lock().unwrap();
        while !core::mem::take(&mut *flag) {
            flag = self.raised.wait(flag).unwrap();
        }
    }

    /// Sleeps until there are no waiters left. Returns the number of sleeps.
    fn run_until_dry(&self) -> usize {
        let mut slept = 0;
        while self.count.request() > 0 {
            self.wait();
            slept += 1;
        }
        slept
    }
}

#[test]
fn who_sleeps_while_somebody_waits_is_woken_by_the_last_who_leaves() {
    static SLEPT: Reached = Reached::new();
    static DRY: Reached = Reached::new();
    explore(3, || {
        let driver = Arc::new(Driver::default());
        driver.count.increment();
        driver.count.increment();
        let leavers = [(); 2].map(|()| {
            let driver = driver.clone();
            thread::spawn(move || driver.leave())
        });
        let slept = driver.run_until_dry();
        SLEPT.here_if(slept > 0);
        DRY.here_if(slept == 0);
        let wakes = leavers.map(|leaver| leaver.join().unwrap());
        assert_eq!(wakes.into_iter().filter(|woke| *woke).count(), slept, "woken once, if at all");
    });
    SLEPT.assert("it slept, and was woken");
    DRY.assert("both had left before it asked");
}

#[test]
fn one_who_comes_when_the_last_leaves_is_counted() {
    static AGAIN: Reached = Reached::new();
    static FIRST: Reached = Reached::new();
    explore(3, || {
        let driver = Arc::new(Driver::default());
        driver.count.increment();
        let user = {
            let driver = driver.clone();
            thread::spawn(move || {
                let first = driver.leave();
                driver.count.increment();
                (first, driver.leave())
            })
        };
        driver.run_until_dry();
        let (first, second) = user.join().unwrap();
        FIRST.here_if(first);
        AGAIN.here_if(second);
        assert_eq!(driver.count.request(), 0);
    });
    FIRST.assert("the first to leave has woken it");
    AGAIN.assert("the second has");
}
