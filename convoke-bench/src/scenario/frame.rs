//! The memory of a child future that cannot live in its parent: a frame of 256 bytes is allocated, run and
//! freed.
//!
//! The allocators are called directly, not through the global one, so they can be compared in any process,
//! and their allocations are not counted. `box_pin` is the usual form, and is counted.

use std::future::{Future, ready};
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::task::{Context, Waker};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use convoke::alloc::frame;
use convoke::env::Changes;

use super::{CONVOKE, Scenario};
use crate::measure::time;
use crate::own::run_with;
use crate::peer::{BumpStack, Frame, FrameAllocator, Mimalloc, RecyclingFrames, SystemFrames};

/// Number of frames that move between threads together, and of such loads: they spread the cost of the
/// channel over many frames, and the threads do not wait for each other at every load.
const LOAD: usize = 1000;
const LOADS: usize = 8;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new("frame", "allocate a child future of 256 bytes, await it, free it")
            .contestant(CONVOKE, || here(RecyclingFrames))
            .contestant("convoke_in_task", in_task)
            .contestant("box_pin", box_pin)
            .contestant("box_pin_in_task", box_pin_in_task)
            .contestant("system", || here(SystemFrames))
            .contestant("mimalloc", || here(Mimalloc))
            .contestant("bump_stack", || here(BumpStack::leak())),
        Scenario::new(
            "frame_cross_thread",
            "allocate a child future of 256 bytes on one thread, free it on another",
        )
        .batch(LOAD as u64)
        .contestant(CONVOKE, || across(RecyclingFrames))
        .contestant("system", || across(SystemFrames))
        .contestant("mimalloc", || across(Mimalloc)),
    ]
}

/// A future of 256 bytes, most of which are not written, as in real ones.
async fn child(number: u32) -> u32 {
    let mut state = MaybeUninit::<[u64; 30]>::uninit();
    black_box(&mut state);
    ready(()).await;
    black_box(&mut state);
    black_box(number)
}

/// `frame` as users write it: the allocator comes from the environment of the task.
fn in_task() -> impl FnMut(u64) -> Duration {
    |ops| {
        run_with(Changes::new(), move |_| async move {
            let start = Instant::now();
            for op in 0..ops {
                black_box(frame(child(op as u32)).await);
            }
            start.elapsed()
        })
    }
}

fn box_pin_in_task() -> impl FnMut(u64) -> Duration {
    |ops| {
        run_with(Changes::new(), move |_| async move {
            let start = Instant::now();
            for op in 0..ops {
                black_box(Box::pin(child(op as u32)).await);
            }
            start.elapsed()
        })
    }
}

fn box_pin() -> impl FnMut(u64) -> Duration {
    |ops| {
        let mut context = Context::from_waker(Waker::noop());
        time(|| {
            for op in 0..ops {
                let mut frame = Box::pin(child(op as u32));
                _ = black_box(black_box(&mut frame).as_mut().poll(&mut context));
            }
        })
    }
}

/// Another frame stays alive meanwhile, as in a program: without a single live block of that size, mimalloc
/// would return the page and fetch it again, which takes a microsecond.
fn here<A: FrameAllocator>(allocator: A) -> impl FnMut(u64) -> Duration {
    let other = Frame::new(&allocator, || child(0));
    move |ops| {
        black_box(&other);
        let mut context = Context::from_waker(Waker::noop());
        time(|| {
            for op in 0..ops {
                let mut frame = Frame::new(&allocator, || child(op as u32));
                _ = black_box(black_box(&mut frame).as_mut().poll(&mut context));
            }
        })
    }
}

fn across<A: FrameAllocator + Send + 'static>(allocator: A) -> impl FnMut(u64) -> Duration {
    let make = move |op: u64| Frame::new(&allocator, || child(op as u32));
    let freer = Freer::start();
    move |ops| {
        time(|| {
            for load in 0..ops / LOAD as u64 {
                let mut frames = freer.empty();
                frames.extend((0..LOAD as u64).map(|op| make(load + op)));
                freer.free(frames);
            }
            freer.wait();
        })
    }
}

/// A thread that drops what it receives and returns the empty vectors.
struct Freer<T> {
    full: Option<SyncSender<Vec<T>>>,
    empty: Receiver<Vec<T>>,
    /// Puts the empty vectors back after a wait.
    put_back: SyncSender<Vec<T>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Freer<T> {
    fn start() -> Self {
        let (full, to_free) = sync_channel::<Vec<T>>(LOADS);
        let (put_back, empty) = sync_channel(LOADS);
        for _ in 0..LOADS {
            put_back.send(Vec::with_capacity(LOAD)).expect("we hold the other end");
        }
        let give_back = put_back.clone();
        let thread = thread::spawn(move || {
            for mut frames in to_free {
                frames.clear();
                _ = give_back.send(frames);
            }
        });
        Self { full: Some(full), empty, put_back, thread: Some(thread) }
    }

    fn empty(&self) -> Vec<T> {
        self.empty.recv().expect("the thread gives them back")
    }

    fn free(&self, frames: Vec<T>) {
        self.full.as_ref().expect("not dropped").send(frames).expect("the thread takes them");
    }

    /// Waits until all is freed: then every vector is empty again.
    fn wait(&self) {
        let all: Vec<Vec<T>> = (0..LOADS).map(|_| self.empty()).collect();
        for vector in all {
            self.put_back.send(vector).expect("we hold the other end");
        }
    }
}

impl<T> Drop for Freer<T> {
    fn drop(&mut self) {
        drop(self.full.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("dropping a frame does not panic");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_child_is_as_large_as_the_scenario_says() {
        let future = child(1);
        assert_eq!(size_of_val(&future), 256);
    }

    #[test]
    fn all_is_freed_when_the_wait_is_over() {
        let (freer, counted) = (Freer::start(), std::sync::Arc::new(()));
        for _ in 0..3 * LOADS {
            let mut load = freer.empty();
            load.extend((0..LOAD).map(|_| std::sync::Arc::clone(&counted)));
            freer.free(load);
        }
        freer.wait();
        assert_eq!(std::sync::Arc::strong_count(&counted), 1);
    }
}
