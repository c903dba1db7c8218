//! Stop requests against everything that may happen at the same time, in every order.

#![allow(unsafe_code)]

use std::pin::{Pin, pin};

use crate::model::{Count, Reached, explore};
use convoke_core::raw::InPlaceStop;
use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_core::raw::sync::{Arc, Mutex, UnsafeCell, thread};
use convoke_core::{OwnedStopCallback, StopReason, StopSource, StopToken};

/// A cell that one thread at a time may access; loom reports a violation.
struct Watched(UnsafeCell<u32>);

// SAFETY: loom reports overlapping accesses; that is the purpose of the cell.
unsafe impl Sync for Watched {}
// SAFETY: the cell contains a number.
unsafe impl Send for Watched {}

impl Watched {
    fn new() -> Arc<Self> {
        Arc::new(Self(UnsafeCell::new(0)))
    }

    fn touch(&self) {
        // SAFETY: loom reports an overlapping access.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }
}

fn request_in_a_thread(source: &StopSource) -> thread::JoinHandle<bool> {
    let source = source.clone();
    thread::spawn(move || source.request_stop(StopReason::Requested))
}

#[test]
fn a_request_meets_a_callback_that_is_being_registered() {
    static AT_ONCE: Reached = Reached::new();
    static BY_THE_REQUESTER: Reached = Reached::new();
    static NOT_AT_ALL: Reached = Reached::new();
    explore(3, || {
        let source = StopSource::new();
        let token = source.token();
        let (here, elsewhere) = (Count::default(), Count::default());
        let requester = request_in_a_thread(&source);
        {
            let me = thread::current().id();
            let (here, elsewhere) = (here.clone(), elsewhere.clone());
            let callback = pin!(token.as_ref().on_stop(move |_| {
                if thread::current().id() == me {
                    here.add()
                } else {
                    elsewhere.add()
                };
            }));
            callback.as_ref().register();
        }
        let after_the_drop = (here.get(), elsewhere.get());
        assert!(requester.join().unwrap());
        assert_eq!(after_the_drop, (here.get(), elsewhere.get()), "it ran after it was destroyed");
        match after_the_drop {
            (1, 0) => AT_ONCE.here(),
            (0, 1) => BY_THE_REQUESTER.here(),
            (0, 0) => NOT_AT_ALL.here(),
            other => panic!("it ran {other:?} times"),
        }
    });
    AT_ONCE.assert("the stop was requested before it was registered");
    BY_THE_REQUESTER.assert("the stop was requested while it was registered");
    NOT_AT_ALL.assert("the stop was requested after it was destroyed");
}

#[test]
fn destroying_a_callback_waits_for_it_on_another_thread() {
    static WAITED: Reached = Reached::new();
    static HAD_RUN: Reached = Reached::new();
    static NOT_AT_ALL: Reached = Reached::new();
    explore(3, || {
        let source = StopSource::new();
        let token = source.token();
        let watched = Watched::new();
        // A loom atomic, so that loom can switch threads here. Relaxed, because the drop does the ordering.
        let stage = Arc::new(AtomicUsize::new(0));
        let callback = {
            let (watched, stage) = (watched.clone(), stage.clone());
            Box::pin(token.as_ref().on_stop(move |_| {
                stage.store(1, Ordering::Relaxed);
                watched.touch();
                stage.store(2, Ordering::Relaxed);
                watched.touch();
            }))
        };
        callback.as_ref().register();
        let requester = request_in_a_thread(&source);
        let before = stage.load(Ordering::Relaxed);
        drop(callback);
        let after = stage.load(Ordering::Relaxed);
        assert_ne!(after, 1, "it is still running after it was destroyed");
        watched.touch();
        requester.join().unwrap();
        assert_eq!(after, stage.load(Ordering::Relaxed), "it ran after it was destroyed");
        WAITED.here_if(before == 1);
        HAD_RUN.here_if(before == 2);
        NOT_AT_ALL.here_if(after == 0);
    });
    WAITED.assert("it was running when it was destroyed");
    HAD_RUN.assert("it had run when it was destroyed");
    NOT_AT_ALL.assert("it was destroyed first");
}

type Boxed = Box<dyn FnOnce(StopReason) + Send>;
type Place = Arc<Mutex<Option<Pin<Box<OwnedStopCallback<Boxed>>>>>>;

#[test]
fn a_callback_destroys_itself_while_another_thread_wants_to() {
    static ITSELF: Reached = Reached::new();
    static THE_OTHER: Reached = Reached::new();
    static THE_OTHER_WAITED: Reached = Reached::new();
    explore(3, || {
        let source = StopSource::new();
        let place: Place = Arc::new(Mutex::new(None));
        let (ran, itself) = (Count::default(), Count::default());
        let call: Boxed = {
            let (place, ran, itself) = (place.clone(), ran.clone(), itself.clone());
            Box::new(move |_| {
                ran.add();
                let own = place.lock().unwrap().take();
                if own.is_some() {
                    itself.add();
                }
            })
        };
        let callback = Box::pin(source.token().on_stop(call));
        callback.as_ref().register();
        *place.lock().unwrap() = Some(callback);
        let requester = request_in_a_thread(&source);
        let taken = place.lock().unwrap().take();
        let (was_there, ran_before) = (taken.is_some(), ran.get());
        drop(taken);
        let ran_at_the_drop = ran.get();
        requester.join().unwrap();
        assert_eq!(was_there, itself.get() == 0, "exactly one of the two destroys it");
        if was_there {
            assert_eq!(ran_at_the_drop, ran.get(), "it ran after it was destroyed");
        }
        ITSELF.here_if(!was_there);
        THE_OTHER.here_if(was_there && ran.get() == 0);
        THE_OTHER_WAITED.here_if(was_there && ran_before == 0 && ran.get() == 1);
    });
    ITSELF.assert("it destroyed itself");
    THE_OTHER.assert("the other thread destroyed it before it ran");
    THE_OTHER_WAITED.assert("the other thread destroyed it while it ran");
}

#[test]
fn of_two_requesters_one_is_the_first() {
    static FIRST: Reached = Reached::new();
    static SECOND: Reached = Reached::new();
    static CAME_BACK_EARLY: Reached = Reached::new();
    explore(3, || {
        let source = StopSource::new();
        let token = source.token();
        let ran = Count::default();
        let counted = ran.clone();
        let callback = pin!(token.clone().on_stop(move |_| {
            thread::yield_now();
            counted.add();
        }));
        callback.as_ref().register();
        let other = {
            let source = source.clone();
            thread::spawn(move || source.request_stop(StopReason::Deadline))
        };
        let mine = source.request_stop(StopReason::Lost);
        let ran_when_mine_returned = ran.get();
        let others = other.join().unwrap();
        assert!(mine != others, "exactly one is the first");
        assert_eq!(token.reason(), Some(if mine { StopReason::Lost } else { StopReason::Deadline }));
        assert_eq!(ran.get(), 1);
        FIRST.here_if(mine);
        SECOND.here_if(others);
        CAME_BACK_EARLY.here_if(others && ran_when_mine_returned == 0);
    });
    FIRST.assert("this thread was the first");
    SECOND.assert("the other thread was the first");
    CAME_BACK_EARLY.assert("the second returned while the callback still ran for the first");
}

#[test]
fn callbacks_come_and_go_on_three_threads() {
    static RAN: Reached = Reached::new();
    static DID_NOT: Reached = Reached::new();
    explore(2, || {
        let source = StopSource::new();
        let ran = Count::default();
        let come_and_go = |source: &StopSource| {
            let (token, ran) = (source.token(), ran.clone());
            move || {
                let callback = pin!(token.as_ref().on_stop(move |_| _ = ran.add()));
                callback.as_ref().register();
            }
        };
        let threads = [thread::spawn(come_and_go(&source)), thread::spawn(come_and_go(&source))];
        come_and_go(&source)();
        source.request_stop(StopReason::Requested);
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(ran.get() <= 2);
        RAN.here_if(ran.get() == 2);
        DID_NOT.here_if(ran.get() == 0);
    });
    RAN.assert("both of the others were told");
    DID_NOT.assert("both of the others had gone");
}

#[test]
fn a_parent_stops_while_the_last_of_its_child_goes_away() {
    static TOLD: Reached = Reached::new();
    static GONE: Reached = Reached::new();
    explore(3, || {
        let parent = StopSource::new();
        let child = parent.token().child();
        let (ran, watched) = (Count::default(), Watched::new());
        let callback = {
            let (ran, watched) = (ran.clone(), watched.clone());
            Box::pin(child.token().on_stop(move |_| {
                watched.touch();
                ran.add();
            }))
        };
        callback.as_ref().register();
        let requester = request_in_a_thread(&parent);
        drop(child);
        // The callback owns the last token of the child.
        drop(callback);
        let told = ran.get();
        watched.touch();
        assert!(requester.join().unwrap());
        assert_eq!(told, ran.get());
        TOLD.here_if(told == 1);
        GONE.here_if(told == 0);
    });
    TOLD.assert("the child was told");
    GONE.assert("the child had gone");
}

#[test]
fn the_last_token_of_a_child_goes_away_inside_its_own_callback() {
    static BY_THE_PARENT: Reached = Reached::new();
    static BY_THE_CHILD: Reached = Reached::new();
    explore(3, || {
        let parent = StopSource::new();
        let child = parent.token().child();
        let place: Place = Arc::new(Mutex::new(None));
        let reason = Arc::new(Mutex::new(None));
        let call: Boxed = {
            let (place, reason) = (place.clone(), reason.clone());
            Box::new(move |why| {
                *reason.lock().unwrap() = Some(why);
                drop(place.lock().unwrap().take());
            })
        };
        let callback = Box::pin(child.token().on_stop(call));
        callback.as_ref().register();
        *place.lock().unwrap() = Some(callback);
        let requester = request_in_a_thread(&parent);
        child.request_stop(StopReason::Lost);
        drop(child);
        requester.join().unwrap();
        match *reason.lock().unwrap() {
            Some(StopReason::Requested) => BY_THE_PARENT.here(),
            Some(StopReason::Lost) => BY_THE_CHILD.here(),
            other => panic!("told {other:?}"),
        }
    });
    BY_THE_PARENT.assert("the parent's request was the first");
    BY_THE_CHILD.assert("the child's own request was the first");
}

#[test]
fn a_parent_stops_while_a_child_is_made() {
    static BEFORE: Reached = Reached::new();
    static AFTER: Reached = Reached::new();
    explore(3, || {
        let parent = StopSource::new();
        let requester = request_in_a_thread(&parent);
        let child = parent.token().child();
        let already = child.stop_requested();
        requester.join().unwrap();
        assert_eq!(child.token().reason(), Some(StopReason::Requested), "a child must not miss it");
        BEFORE.here_if(already);
        AFTER.here_if(!already);
    });
    BEFORE.assert("the child was made stopped");
    AFTER.assert("the child was stopped later");
}

#[test]
fn a_token_is_asked_of_a_source_in_place_while_it_stops() {
    static BEFORE: Reached = Reached::new();
    static AFTER: Reached = Reached::new();
    static FIRST_ASKED_BY_THE_OTHER: Reached = Reached::new();
    explore(3, || {
        let in_place = Arc::new(InPlaceStop::new(None));
        let asked = Count::default();
        let ask = |in_place: &InPlaceStop, asked: &Count| -> (usize, StopToken) {
            // SAFETY: the source stays in its `Arc`.
            let token = unsafe { in_place.token() }.to_token();
            (asked.add(), token)
        };
        let other = {
            let (in_place, asked) = (in_place.clone(), asked.clone());
            thread::spawn(move || {
                let asked = ask(&in_place, &asked);
                in_place.request_stop(StopReason::Sibling);
                asked
            })
        };
        let (my_turn, mine) = ask(&in_place, &asked);
        let already = mine.stop_requested();
        let (_, others) = other.join().unwrap();
        assert!(mine == others, "all who ask are given the same source");
        assert_eq!(mine.reason(), Some(StopReason::Sibling), "a token must not miss it");
        drop(in_place);
        assert!(mine.stop_requested(), "a token may outlive the source in place");
        BEFORE.here_if(already);
        AFTER.here_if(!already);
        FIRST_ASKED_BY_THE_OTHER.here_if(my_turn == 1);
    });
    BEFORE.assert("it was stopped when the token came");
    AFTER.assert("it was stopped after the token came");
    FIRST_ASKED_BY_THE_OTHER.assert("the other thread asked first");
}

#[test]
fn a_callback_of_a_kept_token_runs_while_the_source_in_place_stops() {
    static RAN: Reached = Reached::new();
    static DID_NOT: Reached = Reached::new();
    explore(3, || {
        let in_place = Arc::new(InPlaceStop::new(None));
        let requester = {
            let in_place = in_place.clone();
            thread::spawn(move || in_place.request_stop(StopReason::Sibling))
        };
        let ran = Count::default();
        {
            let counted = ran.clone();
            // SAFETY: the source stays in its `Arc`.
            let token = unsafe { in_place.token() }.to_token();
            let callback = pin!(token.on_stop(move |_| _ = counted.add()));
            callback.as_ref().register();
        }
        let before = ran.get();
        assert!(requester.join().unwrap());
        assert_eq!(before, ran.get(), "it ran after it was destroyed");
        RAN.here_if(before == 1);
        DID_NOT.here_if(before == 0);
    });
    RAN.assert("it was told");
    DID_NOT.assert("it had gone");
}

/// The request follows two links in one loop; meanwhile the last source of the chain is dropped, and with it
/// the middle one.
#[test]
fn a_request_goes_down_two_links_while_the_end_of_the_chain_goes_away() {
    static TOLD: Reached = Reached::new();
    static GONE: Reached = Reached::new();
    explore(2, || {
        let root = StopSource::new();
        let (ran, watched) = (Count::default(), Watched::new());
        let requester = {
            let grandchild = root.token().child().token().child();
            let (ran, watched) = (ran.clone(), watched.clone());
            let callback = pin!(grandchild.token().on_stop(move |_| {
                watched.touch();
                ran.add();
            }));
            callback.as_ref().register();
            drop(grandchild);
            request_in_a_thread(&root)
        };
        // The callback was dropped with the last tokens of both: it does not run any more.
        let told = ran.get();
        watched.touch();
        assert!(requester.join().unwrap());
        assert_eq!(told, ran.get());
        TOLD.here_if(told == 1);
        GONE.here_if(told == 0);
    });
    TOLD.assert("the grandchild was told");
    GONE.assert("the grandchild had gone");
}
