//! The contract with several threads or handles.

use std::cell::RefCell;
use std::sync::mpsc;
use std::thread;

use super::frame::{Frame, Frames};
use crate::raw::Random;

const SOME: usize = if cfg!(miri) { 4 } else { 32 };
const ROUNDS: usize = if cfg!(miri) { 5 } else { 200 };

pub(super) fn a_clone_frees_what_the_original_made(mut frames: Frames) {
    let frame = frames.make(100, 8);
    let other = frames.clone();
    drop(frames);
    drop(frame);
    drop(other);
}

/// Lets the frames come back in time for the next round, alternating with the other thread.
pub(super) fn a_frame_is_freed_on_another_thread(mut frames: Frames) {
    let (to_free, made) = mpsc::channel::<Vec<Frame>>();
    let (freed, done) = mpsc::channel();
    let other = thread::spawn(move || {
        for batch in made {
            drop(batch);
            freed.send(()).expect("the other thread waits for this");
        }
    });
    for _ in 0..ROUNDS {
        to_free.send((0..SOME).map(|_| frames.make(200, 8)).collect()).expect("the other thread waits");
        done.recv().expect("a frame was damaged when it was freed");
    }
    drop(to_free);
    other.join().expect("the thread only frees frames");
}

pub(super) fn frames_outlive_the_thread_that_made_them(frames: Frames) {
    for _ in 0..SOME {
        let mut own = frames.clone();
        let maker = thread::spawn(move || {
            // Some are freed before the thread ends: what an allocator caches of them must outlive the thread
            // too.
            let mut made: Vec<Frame> = (0..2 * SOME).map(|_| own.make(300, 8)).collect();
            made.truncate(SOME);
            made
        });
        drop(maker.join().expect("the thread only makes frames"));
    }
}

thread_local! {
    /// Dropped when the thread ends, in an unspecified order.
    static LAST: RefCell<Vec<(Frame, Frames)>> = const { RefCell::new(Vec::new()) };
}

/// Frees a frame, and makes and frees another, in the destructor of a thread-local.
struct MakesOneMore(Option<(Frame, Frames)>);

thread_local! {
    static FIRST: RefCell<Option<MakesOneMore>> = const { RefCell::new(None) };
}

impl Drop for MakesOneMore {
    fn drop(&mut self) {
        if let Some((frame, mut frames)) = self.0.take() {
            drop(frame);
            drop(frames.make(400, 8));
        }
    }
}

pub(super) fn a_thread_that_ends_can_still_free(frames: Frames) {
    for frames_first in [true, false] {
        let mut own = frames.clone();
        let ends = thread::spawn(move || {
            // Thread-locals are destroyed in the order of first use or in the reverse: tries both.
            if frames_first {
                drop(own.make(400, 8));
            }
            FIRST.with(|first| *first.borrow_mut() = Some(MakesOneMore(None)));
            let mut made = || (own.make(400, 8), own.clone());
            let (one, other) = (made(), made());
            FIRST.with(|first| *first.borrow_mut() = Some(MakesOneMore(Some(one))));
            LAST.with(|last| last.borrow_mut().push(other));
        });
        ends.join().expect("the thread ends with its frames");
    }
}

/// Makes and frees frames of all sizes on two threads, which send some to each other.
pub(super) fn sizes_and_threads_in_disorder(frames: Frames, seed: u64) {
    let (to_right, from_left) = mpsc::channel();
    let (to_left, from_right) = mpsc::channel();
    thread::scope(|scope| {
        let (left, right) = (frames.clone(), frames);
        let (one, other) = (Random::new(seed), Random::new(!seed));
        let left = scope.spawn(move || disorder(left, one, &to_right, &from_right));
        let right = scope.spawn(move || disorder(right, other, &to_left, &from_left));
        for thread in [left, right] {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

fn disorder(mut frames: Frames, mut random: Random, to: &mpsc::Sender<Frame>, from: &mpsc::Receiver<Frame>) {
    const STEPS: usize = if cfg!(miri) { 40 } else { 5_000 };
    const MAX_LIVE: usize = 40;
    let mut live: Vec<Frame> = Vec::new();
    for _ in 0..STEPS {
        let below = 1 << random.below(14);
        let (size, align) = (random.below(below + 1), 1 << random.below(7));
        // A bounded allocator may be full.
        live.extend(frames.try_make(size, align));
        if !live.is_empty() && (live.len() > MAX_LIVE || random.below(3) == 0) {
            let frame = live.swap_remove(random.below(live.len()));
            // The other thread may have ended; then the frame is dropped here.
            if random.below(2) == 0 {
                drop(to.send(frame));
            }
        }
        live.extend(from.try_iter().take(1));
    }
}
