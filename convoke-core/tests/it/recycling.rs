//! The default frame allocator does without the system, once it has frames. On its own: whoever else uses frames of a
//! size in this process may have those that came back.

#![allow(unsafe_code)]

use std::alloc::Layout;
use std::process::Command;
use std::ptr::NonNull;
use std::sync::mpsc;
use std::thread;

use convoke_core::frames::FrameAllocator;
use convoke_testing::workshop::counting::{allocated, freed};

/// How often this thread asks the system while it does `what`.
fn asked(what: impl FnOnce()) -> usize {
    let before = allocated();
    what();
    allocated() - before
}

/// Whether frames are kept in this process: not under a memory checker.
fn keeps_frames() -> bool {
    std::env::var_os("CONVOKE_FRAME_CACHE").is_none_or(|value| value != "0")
}

#[test]
fn a_frame_that_was_freed_is_the_next_one_without_the_system() {
    if !keeps_frames() {
        return;
    }
    let frames = FrameAllocator::default();
    let layout = Layout::new::<[u64; 37]>();
    let rounds = |count: usize| {
        for _ in 0..count {
            let all: [_; 8] = std::array::from_fn(|_| frames.allocate(layout).unwrap());
            for frame in all {
                // SAFETY: each came from there with this layout.
                unsafe { frames.deallocate(frame, layout) };
            }
        }
    };
    rounds(1);
    assert_eq!(asked(|| rounds(1000)), 0);
}

/// A frame on its way to another thread.
struct Sent(NonNull<u8>);

// SAFETY: a frame belongs to whoever has it.
unsafe impl Send for Sent {}

/// One thread makes, another frees; what it freed comes back to the first.
#[test]
fn frames_freed_elsewhere_come_back_without_the_system() {
    const IN_FLIGHT: usize = if cfg!(miri) { 100 } else { 1000 };
    const ROUNDS: usize = if cfg!(miri) { 15 } else { 100 };
    const WARM_UP: usize = 10;
    if !keeps_frames() {
        return;
    }
    // No other test of this process uses this size.
    let layout = Layout::new::<[u64; 61]>();
    let frames = FrameAllocator::default();
    let (to_free, made) = mpsc::channel::<Vec<Sent>>();
    let (freed, back) = mpsc::channel();
    let freer = thread::spawn(move || {
        let frames = FrameAllocator::default();
        for (round, mut batch) in made.into_iter().enumerate() {
            let free = || {
                for Sent(frame) in batch.drain(..) {
                    // SAFETY: it came from there with this layout.
                    unsafe { frames.deallocate(frame, layout) };
                }
            };
            let asked = asked(free);
            assert!(round < WARM_UP || asked == 0, "to free took {asked} allocations in round {round}");
            freed.send(batch).unwrap();
        }
    });
    let mut batch = Vec::with_capacity(IN_FLIGHT);
    for round in 0..ROUNDS {
        let make = || batch.extend((0..IN_FLIGHT).map(|_| Sent(frames.allocate(layout).unwrap())));
        let asked = asked(make);
        assert!(round < WARM_UP || asked == 0, "to make took {asked} allocations in round {round}");
        to_free.send(batch).unwrap();
        batch = back.recv().unwrap();
    }
    drop(to_free);
    freer.join().unwrap();
}

#[test]
fn a_thread_that_ends_leaves_its_frames_to_the_others() {
    if !keeps_frames() {
        return;
    }
    const SOME: usize = 8;
    fn make_and_free(size: usize) {
        let (frames, layout) = (FrameAllocator::default(), Layout::from_size_align(size, 8).unwrap());
        let all: [_; SOME] = std::array::from_fn(|_| frames.allocate(layout).unwrap());
        for frame in all {
            // SAFETY: each came from there with this layout.
            unsafe { frames.deallocate(frame, layout) };
        }
    }
    thread::spawn(|| make_and_free(1000)).join().unwrap();
    // So that this thread is ready to keep frames, of another size.
    make_and_free(32);
    assert_eq!(asked(|| make_and_free(1000)), 0);
}

#[test]
fn what_is_over_the_bound_goes_back_to_the_system() {
    if !keeps_frames() {
        return;
    }
    const SIZE: usize = 16 * 1024;
    const MADE: usize = 1000;
    const DEPOT: usize = 4 * 1024 * 1024 / SIZE;
    const OWN: usize = 2 * 4;
    let (frames, layout) = (FrameAllocator::default(), Layout::from_size_align(SIZE, 8).unwrap());
    let all = Vec::from_iter((0..MADE).map(|_| frames.allocate(layout).unwrap()));
    let before = freed();
    for frame in all {
        // SAFETY: each came from there with this layout.
        unsafe { frames.deallocate(frame, layout) };
    }
    let kept = MADE - (freed() - before);
    assert!(kept <= DEPOT + OWN, "{kept} frames of {SIZE} bytes were kept");
    assert!(kept >= DEPOT, "only {kept} frames of {SIZE} bytes were kept");
}

/// In a process of its own: the switch is looked at once.
#[test]
fn with_the_switch_off_each_frame_is_the_systems() {
    if keeps_frames() {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "with_the_switch_off_each_frame_is_the_systems"]);
        let output = again.env("CONVOKE_FRAME_CACHE", "0").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let frames = FrameAllocator::default();
    let layout = Layout::new::<[u64; 21]>();
    let round = || {
        let frame = frames.allocate(layout).unwrap();
        // SAFETY: it came from there with this layout.
        unsafe { frames.deallocate(frame, layout) };
    };
    round();
    assert_eq!(asked(|| (0..100).for_each(|_| round())), 100);
}
