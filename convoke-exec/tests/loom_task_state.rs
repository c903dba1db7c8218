//! The state of a task in all interleavings, played by threads that do as it tells them: no wake-up is lost, nobody is inside
//! with somebody else, nobody touches the task after it was freed, and it is freed once.

#![cfg(feature = "loom")]

#[path = "../../convoke-core/tests/model/mod.rs"]
mod model;

use convoke_core::raw::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use convoke_core::raw::sync::{Arc, Mutex, UnsafeCell, thread};
use convoke_exec::raw::task_state::{From, Leave, Opened, Pause, State, Wake};
use model::{Count, Reached, explore};

/// A task of which there is nothing but its state, and what shows who is where.
struct Played {
    state: State,
    /// Who is inside writes it.
    inside: UnsafeCell<usize>,
    /// Who touches the task reads it, and who frees it writes it.
    memory: UnsafeCell<bool>,
    /// Whether it has moved away from its home.
    moved: AtomicBool,
    /// Runnables that are queued, and letters that are on their way. At most one each.
    queued: Count,
    taken: AtomicUsize,
    letters: Mutex<usize>,
    ready: AtomicBool,
}

// SAFETY: the model checks it.
unsafe impl Sync for Played {}
// SAFETY: as above.
unsafe impl Send for Played {}

impl Played {
    fn queued(references: u32) -> Arc<Self> {
        Arc::new(Self {
            state: State::queued(references, false),
            inside: UnsafeCell::new(0),
            memory: UnsafeCell::new(false),
            moved: AtomicBool::new(false),
            queued: Count::default(),
            taken: AtomicUsize::new(0),
            letters: Mutex::new(0),
            ready: AtomicBool::new(false),
        })
    }

    /// The state, of a task that is there.
    fn state(&self) -> &State {
        // SAFETY: a read; the model sees if somebody writes.
        self.memory.with(|freed| assert!(!unsafe { *freed }, "touched after it was freed"));
        &self.state
    }

    fn free(&self) {
        // SAFETY: a write; the model sees if it is not alone.
        self.memory.with_mut(|freed| unsafe {
            assert!(!*freed, "freed twice");
            *freed = true;
        });
    }

    fn is_free(&self) -> bool {
        // SAFETY: a read; the model sees if somebody writes.
        self.memory.with(|freed| unsafe { *freed })
    }

    /// Is inside for a moment.
    fn work(&self) {
        // SAFETY: a write; the model sees if it is not alone.
        self.inside.with_mut(|runs| unsafe { *runs += 1 });
    }

    fn act(&self, wake: Wake) -> Wake {
        match wake {
            Wake::Nothing => {}
            Wake::Post => _ = self.queued.add(),
            Wake::Send => *self.letters.lock().unwrap() += 1,
        }
        wake
    }

    fn wake(&self, from: From) -> Wake {
        self.act(self.state().wake(from))
    }

    fn drop_reference(&self, from: From) -> bool {
        let last = self.state().drop_reference(from);
        if last {
            self.free();
        }
        last
    }

    fn letter_has_come(&self) -> bool {
        let mut letters = self.letters.lock().unwrap();
        let come = *letters > 0;
        assert!(*letters <= 1, "one letter at a time");
        *letters = 0;
        come
    }

    fn wait_for_letter(&self) {
        while !self.letter_has_come() {
            thread::yield_now();
        }
    }

    /// Opens a letter as the header does.
    fn open(&self, from: From) -> Opened {
        self.state().add_reference(from);
        let opened = self.state().open();
        if !opened.refused && !opened.leaving {
            let _ = self.wake(from);
        }
        self.drop_reference(from);
        opened
    }

    /// Where somebody is who is not at home.
    fn where_outside(&self) -> From {
        if self.moved.load(Ordering::Acquire) { From::Anywhere } else { From::Away }
    }

    /// Ends the task from inside. True if it had to wait for a letter.
    fn end(&self, from: From, open_from: From) -> bool {
        self.work();
        self.state().finish(from);
        let mut waited = false;
        loop {
            match self.state().leave(from) {
                Leave::Alone => {
                    self.free();
                    return waited;
                }
                Leave::Counted => {
                    self.drop_reference(from);
                    return waited;
                }
                Leave::Later => {
                    waited = true;
                    self.wait_for_letter();
                    let opened = {
                        self.state().add_reference(open_from);
                        let opened = self.state().open();
                        self.drop_reference(open_from);
                        opened
                    };
                    assert!(opened.leaving, "who opens the letter is told to go on");
                }
            }
        }
    }

    /// Takes the runnable, if one was made since.
    fn take_runnable(&self) -> bool {
        let (made, taken) = (self.queued.get(), self.taken.load(Ordering::Relaxed));
        assert!(made <= taken + 1, "one runnable at a time");
        self.taken.store(made, Ordering::Relaxed);
        made > taken
    }
}

#[test]
fn a_shared_task_is_woken_while_it_pauses() {
    static SEEN: Reached = Reached::new();
    static WOKEN: Reached = Reached::new();
    static POSTED: Reached = Reached::new();
    explore(4, || {
        let task = Played::queued(1);
        let waker = {
            let task = task.clone();
            thread::spawn(move || {
                task.ready.store(true, Ordering::Relaxed);
                let wake = task.wake(From::Anywhere);
                task.drop_reference(From::Anywhere);
                wake
            })
        };
        task.state().begin(From::Anywhere);
        task.work();
        let seen = task.ready.load(Ordering::Relaxed);
        let pause = task.state().pause(From::Anywhere);
        if pause == Pause::Post {
            task.queued.add();
        }
        let wake = waker.join().unwrap();
        if task.take_runnable() {
            task.state().begin(From::Anywhere);
            assert!(task.ready.load(Ordering::Relaxed), "who is woken sees why");
            task.end(From::Anywhere, From::Anywhere);
        } else {
            assert!(seen, "a wake-up was lost");
            assert!(!task.is_free());
        }
        SEEN.here_if(seen);
        WOKEN.here_if(pause == Pause::Post);
        POSTED.here_if(wake == Wake::Post);
    });
    SEEN.assert("it saw it before it was woken");
    WOKEN.assert("it was woken while it ran");
    POSTED.assert("it was woken after it had paused");
}

#[test]
fn a_task_at_home_is_woken_from_elsewhere_by_a_letter() {
    static SEEN: Reached = Reached::new();
    static LATER: Reached = Reached::new();
    static TWO_WITH_ONE_LETTER: Reached = Reached::new();
    static EACH_A_LETTER: Reached = Reached::new();
    explore(2, || {
        let task = Played::queued(2);
        let wakers: Vec<_> = (0..2)
            .map(|_| {
                let task = task.clone();
                thread::spawn(move || {
                    task.ready.store(true, Ordering::Relaxed);
                    let wake = task.wake(From::Away);
                    task.drop_reference(From::Away);
                    wake
                })
            })
            .collect();
        task.state().begin(From::Home);
        task.work();
        let seen = task.ready.load(Ordering::Relaxed);
        assert_eq!(task.state().pause(From::Home), Pause::Idle, "nobody else changes it");
        task.wait_for_letter();
        task.open(From::Home);
        assert!(task.take_runnable(), "the letter woke it");
        task.state().begin(From::Home);
        assert!(task.ready.load(Ordering::Relaxed), "who is woken sees why");
        let waited = task.end(From::Home, From::Home);
        let sent =
            wakers.into_iter().map(|waker| waker.join().unwrap()).filter(|wake| *wake == Wake::Send).count();
        assert!(task.is_free());
        SEEN.here_if(seen);
        LATER.here_if(waited);
        TWO_WITH_ONE_LETTER.here_if(sent == 1);
        EACH_A_LETTER.here_if(sent == 2);
    });
    SEEN.assert("it saw it before the letter came");
    LATER.assert("it waited for the second letter");
    TWO_WITH_ONE_LETTER.assert("one letter for two, or the second came when it had left");
    EACH_A_LETTER.assert("two letters");
}

#[test]
fn a_task_at_home_leaves_while_it_is_woken_from_elsewhere() {
    static BEFORE: Reached = Reached::new();
    static LATER: Reached = Reached::new();
    static FREED_AWAY: Reached = Reached::new();
    explore(4, || {
        let task = Played::queued(1);
        let waker = {
            let task = task.clone();
            thread::spawn(move || {
                let wake = task.wake(From::Away);
                (wake, task.drop_reference(From::Away))
            })
        };
        task.state().begin(From::Home);
        let waited = task.end(From::Home, From::Home);
        let (wake, freed) = waker.join().unwrap();
        assert!(task.is_free());
        assert_eq!(wake == Wake::Send, waited, "a letter is waited for, and nothing else is");
        BEFORE.here_if(!waited);
        LATER.here_if(waited);
        FREED_AWAY.here_if(freed);
    });
    BEFORE.assert("it left first");
    LATER.assert("it waited for the letter");
    FREED_AWAY.assert("the last reference was away");
}

#[test]
fn a_shared_task_is_asked_to_stop_while_it_ends() {
    static HEARD: Reached = Reached::new();
    static TOO_LATE: Reached = Reached::new();
    explore(4, || {
        let task = Played::queued(1);
        let asker = {
            let task = task.clone();
            thread::spawn(move || {
                let wake = task.act(task.state().ask_stop(From::Anywhere));
                task.drop_reference(From::Anywhere);
                wake
            })
        };
        task.state().begin(From::Anywhere);
        let heard = task.state().stop_asked();
        task.end(From::Anywhere, From::Anywhere);
        assert_eq!(asker.join().unwrap(), Wake::Nothing, "who runs and ends is not queued again");
        assert!(task.is_free());
        HEARD.here_if(heard);
        TOO_LATE.here_if(!heard);
    });
    HEARD.assert("it heard of it");
    TOO_LATE.assert("it had ended");
}

#[test]
fn a_stop_from_elsewhere_reaches_a_task_that_waits_at_home() {
    static AT_ONCE: Reached = Reached::new();
    static BY_LETTER: Reached = Reached::new();
    explore(4, || {
        let task = Played::queued(1);
        let asker = {
            let task = task.clone();
            thread::spawn(move || {
                let _ = task.act(task.state().ask_stop(From::Away));
                task.drop_reference(From::Away);
            })
        };
        task.state().begin(From::Home);
        let at_once = task.state().stop_asked();
        if !at_once {
            assert_eq!(task.state().pause(From::Home), Pause::Idle);
            task.wait_for_letter();
            task.open(From::Home);
            assert!(task.take_runnable());
            task.state().begin(From::Home);
            assert!(task.state().stop_asked());
        }
        task.end(From::Home, From::Home);
        asker.join().unwrap();
        assert!(task.is_free());
        AT_ONCE.here_if(at_once);
        BY_LETTER.here_if(!at_once);
    });
    AT_ONCE.assert("it heard of it while it ran");
    BY_LETTER.assert("it was woken for it");
}

#[test]
fn references_are_made_and_dropped_on_three_threads_and_the_task_is_freed_once() {
    static AT_HOME: Reached = Reached::new();
    static AWAY: Reached = Reached::new();
    explore(2, || {
        let task = Played::queued(1);
        task.state().begin(From::Home);
        // One that is made here and dropped there leaves the two counts uneven.
        task.state().add_reference(From::Home);
        let others: Vec<_> = (0..2)
            .map(|number| {
                let task = task.clone();
                thread::spawn(move || {
                    if number == 0 {
                        task.state().add_reference(From::Away);
                        assert!(!task.drop_reference(From::Away), "there is another");
                    }
                    task.drop_reference(From::Away)
                })
            })
            .collect();
        task.end(From::Home, From::Home);
        let freed = others.into_iter().fold(false, |freed, other| freed | other.join().unwrap());
        assert!(task.is_free());
        AT_HOME.here_if(!freed);
        AWAY.here_if(freed);
    });
    AT_HOME.assert("the task itself was the last");
    AWAY.assert("a reference elsewhere was the last");
}

#[test]
fn a_shared_task_is_freed_once_by_whoever_is_last() {
    static ALONE: Reached = Reached::new();
    static OTHER: Reached = Reached::new();
    explore(4, || {
        let task = Played::queued(1);
        let other = {
            let task = task.clone();
            thread::spawn(move || {
                task.state().add_reference(From::Anywhere);
                let _ = task.wake(From::Anywhere);
                task.drop_reference(From::Anywhere);
                task.drop_reference(From::Anywhere)
            })
        };
        task.state().begin(From::Anywhere);
        task.end(From::Anywhere, From::Anywhere);
        let by_other = other.join().unwrap();
        assert!(task.is_free());
        ALONE.here_if(!by_other);
        OTHER.here_if(by_other);
    });
    ALONE.assert("the task itself was the last");
    OTHER.assert("the other was the last");
}

#[test]
fn a_task_moves_out_while_it_is_woken_and_its_letter_is_opened_where_it_was() {
    static BY_LETTER: Reached = Reached::new();
    static DIRECTLY: Reached = Reached::new();
    static WAITED: Reached = Reached::new();
    static OPENED_LATE: Reached = Reached::new();
    explore(3, || {
        let task = Played::queued(1);
        task.state().begin(From::Home);
        let waker = {
            let task = task.clone();
            thread::spawn(move || {
                let wake = task.wake(task.where_outside());
                task.drop_reference(task.where_outside());
                wake
            })
        };
        task.state().move_out();
        task.moved.store(true, Ordering::Release);
        // It woke itself, and goes on elsewhere: this thread is the home from here on.
        assert_eq!(task.wake(From::Anywhere), Wake::Nothing);
        task.work();
        assert_eq!(task.state().pause(From::Anywhere), Pause::Post);
        let runs_on = {
            let task = task.clone();
            thread::spawn(move || {
                task.state().begin(From::Anywhere);
                task.work();
                task.state().finish(From::Anywhere);
                let leave = task.state().leave(From::Anywhere);
                if leave == Leave::Counted {
                    task.drop_reference(From::Anywhere);
                }
                leave
            })
        };
        let mut opened = None;
        if task.letter_has_come() {
            opened = Some(task.open(From::Anywhere));
        }
        let wake = waker.join().unwrap();
        let leave = runs_on.join().unwrap();
        if task.letter_has_come() {
            assert!(opened.is_none(), "it was woken once");
            opened = Some(task.open(From::Anywhere));
        }
        if leave == Leave::Later {
            assert!(opened.unwrap().leaving, "who opens the letter is told to go on");
            assert_eq!(task.state().leave(From::Anywhere), Leave::Counted);
            task.drop_reference(From::Anywhere);
        }
        assert!(task.is_free());
        BY_LETTER.here_if(wake == Wake::Send);
        DIRECTLY.here_if(wake == Wake::Nothing);
        WAITED.here_if(leave == Leave::Later);
        OPENED_LATE.here_if(opened.is_some_and(|opened| !opened.leaving));
    });
    BY_LETTER.assert("it was woken by a letter to where it was");
    DIRECTLY.assert("it was woken where it is");
    WAITED.assert("it waited for the letter to leave");
    OPENED_LATE.assert("the letter was opened while it ran elsewhere");
}

#[test]
fn a_runnable_that_is_refused_elsewhere_is_sent_home_once() {
    static ONE_LETTER: Reached = Reached::new();
    static TWO_LETTERS: Reached = Reached::new();
    explore(4, || {
        let task = Played::queued(1);
        let refuser = {
            let task = task.clone();
            thread::spawn(move || task.act(task.state().refuse_away()))
        };
        let waker = {
            let task = task.clone();
            thread::spawn(move || {
                let wake = task.wake(From::Away);
                task.drop_reference(From::Away);
                wake
            })
        };
        // Home: opens letters until the runnable has come back.
        loop {
            task.wait_for_letter();
            if task.open(From::Home).refused {
                break;
            }
        }
        assert!(!task.take_runnable(), "it was queued all the time");
        task.state().begin(From::Home);
        task.end(From::Home, From::Home);
        let sent = [refuser.join().unwrap(), waker.join().unwrap()];
        assert!(task.is_free());
        let sent = sent.iter().filter(|wake| **wake == Wake::Send).count();
        ONE_LETTER.here_if(sent == 1);
        TWO_LETTERS.here_if(sent == 2);
    });
    ONE_LETTER.assert("both in one letter");
    TWO_LETTERS.assert("a letter each");
}

#[test]
fn a_child_that_leaves_alone_was_given_out_before_its_parent_heard_of_it() {
    static ALONE: Reached = Reached::new();
    static AFTER_ALL: Reached = Reached::new();
    static LATER: Reached = Reached::new();
    for home in [true, false] {
        let (from, other) = if home { (From::Home, From::Away) } else { (From::Anywhere, From::Anywhere) };
        explore(4, move || {
            let task = Played::queued(0);
            // The parent's list: whether the child is in it, and whether it was given out.
            let list = Arc::new(Mutex::new((true, false)));
            let asker = {
                let (task, list) = (task.clone(), list.clone());
                thread::spawn(move || {
                    {
                        let mut list = list.lock().unwrap();
                        if !list.0 {
                            return;
                        }
                        list.1 = true;
                        task.state().add_reference(other);
                    }
                    let _ = task.act(task.state().ask_stop(other));
                    task.drop_reference(other);
                })
            };
            task.state().begin(from);
            task.work();
            task.state().finish(from);
            let leave_parent = || {
                let mut list = list.lock().unwrap();
                list.0 = false;
                list.1
            };
            let mut leave = task.state().leave(from);
            while leave == Leave::Later {
                task.wait_for_letter();
                task.state().add_reference(from);
                assert!(task.state().open().leaving);
                task.drop_reference(from);
                leave = task.state().leave(from);
                LATER.here();
            }
            let given_out = leave_parent();
            if leave == Leave::Alone && !given_out {
                task.free();
                ALONE.here();
            } else {
                if leave == Leave::Alone {
                    AFTER_ALL.here();
                    while task.state().leave_after_all(from) == Leave::Later {
                        task.wait_for_letter();
                        task.state().add_reference(from);
                        assert!(task.state().open().leaving);
                        task.drop_reference(from);
                    }
                }
                task.drop_reference(from);
            }
            asker.join().unwrap();
            assert!(task.is_free());
        });
    }
    ALONE.assert("nobody else knew it");
    AFTER_ALL.assert("it was given out after it had looked");
    LATER.assert("it waited for the letter");
}
