//! There and back, and a strand: one at a time, in order, without a lock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use convoke::executor::Strand;
use convoke::prelude::*;
use convoke::sender::prelude::*;

fn here() -> String {
    thread::current().name().unwrap_or("?").to_string()
}

pub(crate) fn show() {
    let pool = ThreadPool::builder().threads(4).name("worker").build().expect("four threads");
    let there_and_back = just_from(here).on(&pool.executor()).then(|there| (there, here()));
    let (there, back) = sync_wait(there_and_back).unwrap();
    println!("   ran on {there}, went on on {back}");

    const TURNS: usize = 10_000;
    let strand = Strand::new(pool.executor());
    let inside = AtomicUsize::new(0);
    let most = AtomicUsize::new(0);
    let turns: Vec<_> = (0..TURNS)
        .map(|_| {
            let (inside, most) = (&inside, &most);
            schedule(&strand).then(move |()| {
                most.fetch_max(inside.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                inside.fetch_sub(1, Ordering::Relaxed);
            })
        })
        .collect();
    let turns = sync_wait(when_all(turns)).unwrap().len();
    println!("   {turns} turns on a strand over 4 threads; at most {} at a time", most.into_inner());
}
