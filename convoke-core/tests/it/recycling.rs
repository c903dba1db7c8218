//! The default frame allocator does not use the system once it has frames. Each test uses a size of its own:
//! other code of the process that uses the same size may take the frames that came back.

#![allow(unsafe_code)]

use std::alloc::Layout;
use std::process::Command;
use std::ptr::NonNull;
use std::sync::mpsc;
use std::thread;

use convoke_core::frames::FrameAllocator;
use convoke_testing::workshop::counting::{allocated, freed};

/// Returns how often this thread allocates from the system while it runs `what`.
fn system_allocations(what: impl FnOnce()) -> usize {
    let before = allocated();
    what();
    allocated() - before
}

/// Returns true if frames are cached in this process: they are not under a memory checker.
fn caches_frames() -> bool {
    std::env::var_os("CONVOKE_FRAME_CACHE").is_none_or(|value| value != "0")
}

#[test]
fn a_freed_frame_is_reused_without_the_system() {
    if !caches_frames() {
        return;
    }
    let frames = FrameAllocator::default();
    let layout = Layout::new::<[u64; 37]>();
    let rounds = |count: usize| {
        for _ in 0..count {
            let all: [_; 8] = std::array::from_fn(|_| frames.allocate(layout).unwrap());
            for frame in all {
                // SAFETY: it came from there with this layout, and is freed once.
                unsafe { frames.deallocate(frame, layout) };
            }
        }
    };
    rounds(1);
    assert_eq!(system_allocations(|| rounds(1000)), 0);
}

/// A frame on its way to another thread.
struct Sent(NonNull<u8>);

// SAFETY: a frame may be freed on any thread.
unsafe impl Send for Sent {}

/// Makes frames on one thread and frees them on another: they come back to the first.
#[test]
fn frames_freed_on_another_thread_come_back_without_the_system() {
    const IN_FLIGHT: usize = if cfg!(miri) { 100 } else { 1000 };
    const ROUNDS: usize = if cfg!(miri) { 15 } else { 100 };
    const WARM_UP: usize = 10;
    if !caches_frames() {
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
                    // SAFETY: it came from there with this layout, and is freed once.
                    unsafe { frames.deallocate(frame, layout) };
                }
            };
            let count = system_allocations(free);
            assert!(round < WARM_UP || count == 0, "freeing took {count} allocations in round {round}");
            freed.send(batch).unwrap();
        }
    });
    let mut batch = Vec::with_capacity(IN_FLIGHT);
    for round in 0..ROUNDS {
        let make = || batch.extend((0..IN_FLIGHT).map(|_| Sent(frames.allocate(layout).unwrap())));
        let count = system_allocations(make);
        assert!(round < WARM_UP || count == 0, "making took {count} allocations in round {round}");
        to_free.send(batch).unwrap();
        batch = back.recv().unwrap();
    }
    drop(to_free);
    freer.join().unwrap();
}

#[test]
fn a_thread_that_ends_leaves_its_frames_to_other_threads() {
    if !caches_frames() {
        return;
    }
    const SOME: usize = 8;
    fn make_and_free(size: usize) {
        let (frames, layout) = (FrameAllocator::default(), Layout::from_size_align(size, 8).unwrap());
        let all: [_; SOME] = std::array::from_fn(|_| frames.allocate(layout).unwrap());
        for frame in all {
            // SAFETY: it came from there with this layout, and is freed once.
            unsafe { frames.deallocate(frame, layout) };
        }
    }
    thread::spawn(|| make_and_free(1000)).join().unwrap();
    // Opens the cache of this thread, with another size.
    make_and_free(32);
    assert_eq!(system_allocations(|| make_and_free(1000)), 0);
}

#[test]
fn frames_above_the_bound_go_back_to_the_system() {
    if !caches_frames() {
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
        // SAFETY: it came from there with this layout, and is freed once.
        unsafe { frames.deallocate(frame, layout) };
    }
    let cached = MADE - (freed() - before);
    assert!(cached <= DEPOT + OWN, "{cached} frames of {SIZE} bytes were cached");
    assert!(cached >= DEPOT, "only {cached} frames of {SIZE} bytes were cached");
}

/// Runs in a process of its own, because the variable is read once.
#[test]
fn with_the_cache_off_each_frame_comes_from_the_system() {
    if caches_frames() {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "recycling::with_the_cache_off_each_frame_comes_from_the_system"]);
        let output = again.env("CONVOKE_FRAME_CACHE", "0").output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}");
        return;
    }
    let frames = FrameAllocator::default();
    let layout = Layout::new::<[u64; 21]>();
    let round = || {
        let frame = frames.allocate(layout).unwrap();
        // SAFETY: it came from there with this layout, and is freed once.
        unsafe { frames.deallocate(frame, layout) };
    };
    round();
    assert_eq!(system_allocations(|| (0..100).for_each(|_| round())), 100);
}
