//! Loops and recursion of a million steps that complete in place.

use std::ops::ControlFlow;

use convoke::sender::prelude::*;

const STEPS: u64 = 1_000_000;

/// Calls itself a million times, through the run loop of the caller.
fn count_down(n: u64) -> AnySender<&'static str> {
    read_env(|env| env.executor().clone())
        .let_value(|executor| schedule(&executor))
        .let_value(move |()| if n == 0 { just("landed").boxed() } else { count_down(n - 1) })
        .boxed()
}

pub(crate) fn show() {
    let mut sum = 0;
    let mut next = 0;
    let looped = repeat_until(move || {
        next += 1;
        sum += next;
        just(if next == STEPS { ControlFlow::Break(sum) } else { ControlFlow::Continue(()) })
    });
    println!("   repeat_until:  the sum of 1 to {STEPS} is {}", sync_wait(looped).unwrap());

    println!("   recursion through schedule, {STEPS} deep:  {}", sync_wait(count_down(STEPS)).unwrap());

    let waits = (0..STEPS).map(|i| sync_wait(just(i).then(|i| i & 1)).unwrap()).sum::<u64>();
    println!("   {STEPS} times sync_wait:  {waits} odd numbers");
}
