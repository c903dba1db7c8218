//! Boxed senders nested in one another, more of them than fit on a stack. Each test overflowed the stack when
//! nested boxed senders started, completed and were dropped by recursion.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;

use convoke_core::testing::{ByHand, DropCount};
use convoke_sender::prelude::*;
use convoke_sender::testing::{Connected, Gate};

const DEEP: usize = if cfg!(miri) { 70 } else { 100_000 };

/// Runs `f` on a small stack, so that a recursion overflows it soon.
fn on_a_small_stack(f: impl FnOnce() + Send + 'static) {
    let stack = if cfg!(miri) { 4 << 20 } else { 512 << 10 };
    thread::Builder::new().stack_size(stack).spawn(f).unwrap().join().unwrap();
}

/// Wraps `innermost` again and again.
fn nested(
    innermost: AnySender<usize>,
    mut wrap: impl FnMut(AnySender<usize>) -> AnySender<usize>,
) -> AnySender<usize> {
    (0..DEEP).fold(innermost, |inner, _| wrap(inner))
}

#[test]
fn nested_boxed_senders_start_and_complete_inline() {
    on_a_small_stack(|| {
        let sender = nested(just(0).boxed(), |inner| inner.then(|n| n + 1).boxed());
        assert_eq!(Connected::new(sender).start().outcome(), Outcome::Value(DEEP));
    });
}

#[test]
fn nested_boxed_senders_complete_after_they_have_waited() {
    on_a_small_stack(|| {
        let gate = Gate::<usize>::new();
        let sender = nested(gate.sender().boxed(), |inner| inner.then(|n| n + 1).boxed());
        let running = Connected::new(sender).start();
        assert!(gate.is_waiting());
        gate.complete(Outcome::Value(7));
        assert_eq!(running.outcome(), Outcome::Value(DEEP + 7));
    });
}

#[test]
fn a_stop_goes_all_the_way_down_and_its_outcome_all_the_way_up() {
    on_a_small_stack(|| {
        let source = StopSource::new();
        let sender = nested(never().boxed(), |inner| inner.then(|n| n + 1).boxed());
        let running = Connected::stoppable(sender, &source).start();
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Stopped);
    });
}

#[test]
fn every_adaptor_lets_boxed_senders_nest() {
    on_a_small_stack(|| {
        let mut level = 0;
        let by_hand = ByHand::new();
        let executor = by_hand.clone();
        let sender = nested(just(0).boxed(), move |inner| {
            level += 1;
            match level % 8 {
                0 => inner.let_value(just).boxed(),
                1 => inner.finally(just(())).boxed(),
                2 => inner.unstoppable().boxed(),
                3 => when_all((inner, just(()))).then(|(n, ())| n).boxed(),
                4 => when_any((inner, never())).boxed(),
                5 => inner.bulk(1, |_, _| ()).boxed(),
                6 if level % 5_000 == 6 => inner.continues_on(&executor).boxed(),
                _ => just(()).let_value(move |()| inner.then(|n| n + 1)).boxed(),
            }
        });
        let running = Connected::new(sender).start();
        while by_hand.run_all() > 0 {}
        assert!(running.outcome().is_value());
    });
}

#[test]
fn groups_inside_of_one_another_stop_without_recursion() {
    on_a_small_stack(|| {
        let (source, outer) = (StopSource::new(), Gate::<usize>::new());
        let sender = nested(never().boxed(), |inner| {
            let other = just(()).may_fail().boxed();
            when_all((inner.may_fail::<()>(), other)).then(|(n, ())| n).upon_error(|()| 0).boxed()
        });
        let running = Connected::stoppable(when_all((sender, outer.sender())), &source).start();
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Stopped);
    });
}

#[test]
fn nested_boxed_senders_are_dropped_unstarted() {
    on_a_small_stack(|| {
        let count = DropCount::new();
        let token = count.token();
        let innermost = just(0).then(move |n| (n, drop(token)).0).boxed();
        let tokens = count.clone();
        let sender = nested(innermost, move |inner| {
            let token = tokens.token();
            inner.then(move |n| (n, drop(token)).0).boxed()
        });
        drop(Connected::new(sender));
        assert_eq!(count.dropped(), DEEP + 1);
    });
}

#[test]
fn nested_boxed_senders_are_asked_where_they_complete() {
    on_a_small_stack(|| {
        let by_hand = ByHand::new();
        let shallow = schedule(&by_hand).boxed().then(|()| 1).boxed();
        assert_eq!(shallow.completes_on(&Env::new()), Some(ExecutorRef::new(by_hand.clone())));
        let deep = nested(schedule(&by_hand).then(|()| 0).boxed(), |inner| inner.then(|n| n + 1).boxed());
        assert_eq!(deep.completes_on(&Env::new()), None, "nested too deeply for an answer");
        let running = Connected::new(deep.bulk(3, |_, _| ())).start();
        by_hand.run_all();
        assert_eq!(running.outcome(), Outcome::Value(DEEP));
    });
}

/// A closure that blocks until other boxed work has ended is not inside of that work: it must not wait for
/// itself.
#[test]
fn a_closure_deep_inside_may_run_other_boxed_work_to_its_end() {
    on_a_small_stack(|| {
        let ran = Arc::new(AtomicUsize::new(0));
        let count = ran.clone();
        let innermost = just(0).then(move |n| {
            let (sent, received) = mpsc::channel();
            let work = just(1).boxed().then(move |one| sent.send(one).unwrap()).boxed();
            let running = Connected::new(work.then(|()| 2).boxed()).start();
            count.fetch_add(received.recv().unwrap(), Relaxed);
            assert_eq!(running.outcome(), Outcome::Value(2));
            n
        });
        let sender = nested(innermost.boxed(), |inner| inner.then(|n| n + 1).boxed());
        assert_eq!(Connected::new(sender).start().outcome(), Outcome::Value(DEEP));
        assert_eq!(ran.load(Relaxed), 1);
    });
}

#[test]
fn a_panic_deep_inside_is_the_outcome() {
    on_a_small_stack(|| {
        let bomb = just(0_usize).then(|_| -> usize { panic!("deep down") }).boxed();
        let sender = nested(bomb, |inner| inner.then(|n| n + 1).boxed());
        assert_eq!(Connected::new(sender).start().outcome(), Outcome::Panicked(Panic::new("deep down")));
    });
}

#[test]
fn a_tail_call_after_work_elsewhere_sees_the_executor_of_that_work() {
    let (there, further) = (ByHand::new(), ByHand::new());
    let sees = |executor: &ByHand| {
        let executor = executor.clone();
        read_env(move |env: &Env| env.executor().is(&executor)).boxed()
    };
    let (a, b) = (sees(&there), sees(&further));
    let (hops, last) = (further.clone(), b);
    let sender = schedule(&there)
        .let_value(move |()| {
            let next = move |is_there| match is_there {
                true => schedule(&hops).let_value(move |()| last).boxed(),
                false => just(false).boxed(),
            };
            a.let_value(next).boxed()
        })
        .boxed();
    let running = Connected::new(sender).start();
    assert_eq!((there.run_all(), further.run_all()), (1, 1));
    assert_eq!(running.outcome(), Outcome::Value(true));
}
