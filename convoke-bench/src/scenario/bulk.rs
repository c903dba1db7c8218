//! A light body for each of a million indices, on two threads: the cost of sharing them out.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rayon::prelude::*;

use convoke::prelude::*;
use convoke::sender::prelude::*;

use super::{CONVOKE, Scenario};
use crate::measure::time;
use crate::peer::rayon_pool;

const INDICES: u64 = 1_000_000;
const WORKERS: usize = 2;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new("bulk", "write the hash of an index to its element in a slice of a million, 2 threads")
            .batch(INDICES)
            .contestant(CONVOKE, convoke)
            .contestant("rayon", rayon)
            .contestant("serial", serial),
    ]
}

/// The body: the finaliser of splitmix64.
fn hash(index: u64) -> u64 {
    let x = (index ^ (index >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn slice() -> Vec<u64> {
    vec![1; INDICES as usize]
}

/// Calls `pass` for each million ops, with a slice that the compiler must really write.
fn passes(ops: u64, elements: &mut [u64], pass: impl Fn(&mut [u64])) -> Duration {
    time(|| {
        for _ in 0..ops / INDICES {
            pass(black_box(&mut *elements));
        }
    })
}

/// `par_chunks_mut` was tried, too, and is no faster.
fn rayon() -> impl FnMut(u64) -> Duration {
    let (pool, mut elements) = (rayon_pool(WORKERS), slice());
    move |ops| {
        pool.install(|| {
            passes(ops, &mut elements, |elements| {
                elements
                    .par_iter_mut()
                    .enumerate()
                    .for_each(|(index, element)| *element = hash(index as u64));
            })
        })
    }
}

fn serial() -> impl FnMut(u64) -> Duration {
    let mut elements = slice();
    move |ops| {
        passes(ops, &mut elements, |elements| {
            for (index, element) in elements.iter_mut().enumerate() {
                *element = hash(index as u64);
            }
        })
    }
}

/// The elements are atomics, written relaxed, because the threads share the function of `bulk`. On the
/// processor that is a plain store.
fn convoke() -> impl FnMut(u64) -> Duration {
    let pool = ThreadPool::new(WORKERS).expect("threads");
    let elements: Vec<_> = (0..INDICES).map(|_| AtomicU64::new(1)).collect();
    move |ops| {
        let elements = &*elements;
        let passes = repeat_n((ops / INDICES) as usize, |_| {
            just(black_box(elements))
                .bulk(INDICES as usize, |index, elements| {
                    elements[index].store(hash(index as u64), Ordering::Relaxed);
                })
                .then(drop)
        });
        // Inside the pool, as for the peer; the clock, too.
        let timed =
            just_from(std::time::Instant::now).let_value(|start| passes.then(move |()| start.elapsed()));
        sync_wait(timed.starts_on(&pool.executor())).unwrap()
    }
}
