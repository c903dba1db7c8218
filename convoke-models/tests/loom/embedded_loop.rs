//! Models of a loop that another event loop runs, and of a join outside of tasks: no wake is lost.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use crate::model::{Reached, explore};
use convoke_core::raw::sync::{Condvar, Mutex, thread};
use convoke_exec::raw::{EmbeddedLoop, Moment, Sleeper};
use convoke_sender::prelude::*;
use convoke_sender::sync_wait;
use convoke_task::launch;

/// The event loop around: it waits until it is woken.
#[derive(Default)]
struct Around {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Around {
    fn set(&self) {
        *self.woken.lock().unwrap() = true;
        self.changed.notify_one();
    }

    fn wait(&self) {
        let mut woken = self.woken.lock().unwrap();
        while !*woken {
            woken = self.changed.wait(woken).unwrap();
        }
        *woken = false;
    }
}

impl Sleeper for Around {
    fn sleep(&self, _: Option<Instant>) {}

    fn check(&self) {}

    fn wake(&self) {
        self.set();
    }
}

impl Wake for Around {
    fn wake(self: Arc<Self>) {
        self.set();
    }
}

/// Runs what is queued. Returns the number of pieces.
fn run_some(embedded: &EmbeddedLoop) -> usize {
    let mut asked = 0;
    embedded.run_while(|moment| {
        asked += usize::from(moment == Moment::Next);
        moment == Moment::Next
    });
    // It asks once more than it runs.
    asked - 1
}

#[test]
fn work_posted_while_an_embedded_loop_begins_to_doze_wakes_the_loop_around() {
    static THERE: Reached = Reached::new();
    static WAITED: Reached = Reached::new();
    explore(3, || {
        let around = Arc::new(Around::default());
        let embedded = EmbeddedLoop::over(around.clone(), None);
        let executor = embedded.executor();
        let poster = thread::spawn(move || {
            assert_eq!(sync_wait(schedule(&executor).then(|()| 7)), Outcome::Value(7));
        });
        let mut has_waited = false;
        loop {
            embedded.rouse();
            if run_some(&embedded) > 0 {
                break;
            }
            if embedded.doze() {
                has_waited = true;
                around.wait();
            }
        }
        (if has_waited { &WAITED } else { &THERE }).here();
        poster.join().unwrap();
    });
    THERE.assert("it was there already");
    WAITED.assert("it was waited for");
}

#[test]
fn a_join_outside_of_tasks_hears_of_the_end() {
    static AT_ONCE: Reached = Reached::new();
    static WOKEN: Reached = Reached::new();
    explore(3, || {
        let embedded = EmbeddedLoop::over(Arc::new(Around::default()), None);
        let mut launched = launch(&embedded.executor()).start(async { 7 });
        let other = thread::spawn(move || {
            run_some(&embedded);
        });
        let around = Arc::new(Around::default());
        let waker = Waker::from(around.clone());
        let mut polls = 0;
        loop {
            polls += 1;
            match launched.poll_join(&mut Context::from_waker(&waker)) {
                Poll::Ready(joined) => break assert_eq!(joined, Ok(7)),
                Poll::Pending => around.wait(),
            }
        }
        (if polls == 1 { &AT_ONCE } else { &WOKEN }).here();
        other.join().unwrap();
    });
    AT_ONCE.assert("it had ended already");
    WOKEN.assert("it was woken");
}
