//! P4003R1 §5.4, *The window*: a chain finds its own allocator after a function
//! that it called has run another chain, with another allocator, on the same
//! thread.
//!
//! The paper's `safe_resume` is what each poll of a task does: it sets the thread's
//! pointer to its environment, and restores the one it found.

use convoke::alloc::{Counting, FrameAllocator, frame};
use convoke::env::Changes;
use convoke::executor::{RunLoop, block_on_with};
use convoke::prelude::*;

type Frames = Counting<FrameAllocator>;

async fn child() {
    checkpoint().await;
}

/// Returns how many frames its child takes from `frames`.
async fn parent(frames: Frames, between: impl FnOnce()) -> usize {
    between(); // Runs a task of another chain, in the middle of this one.
    let before = frames.total();
    let child = frame(child());
    let taken = frames.total() - before;
    child.await;
    taken
}

pub(crate) fn run() -> String {
    let frames = || Frames::new(FrameAllocator::default());
    let (ours, theirs, other) = (frames(), frames(), RunLoop::new());
    let memory = FrameAllocator::new(theirs.clone());
    let launch = launch(&other.executor()).allocator(memory);
    let their_parent = launch.start(parent(theirs, || ()));
    let changes = Changes::new().allocator(FrameAllocator::new(ours.clone()));
    let ours = block_on_with(changes, parent(ours, || _ = other.run_ready()));
    let theirs = their_parent.wait();
    format!("{} frame of ours, {} of theirs", ours.unwrap(), theirs.unwrap())
}
