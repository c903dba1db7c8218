//! P4003R1 §4.3, `set_frame_allocator`: a context chooses the allocator of the
//! chains that are launched on it and name none, with all that libraries start in
//! them.
//!
//! It is chosen when the context is made and does not change, so that reading it
//! takes no lock. The launch names the context.

use convoke::alloc::{Counting, FrameAllocator};
use convoke::env::current;
use convoke::executor::Context;
use convoke::prelude::*;

async fn foreign_library() -> Option<FrameAllocator> {
    let child = async { current::env(|env| Some(env?.allocator().clone())) };
    scope(async |s| s.spawn_future(child).await).await
}

pub(crate) fn run() -> String {
    let counting = Counting::new(FrameAllocator::default());
    let frames = FrameAllocator::new(counting.clone());
    let context = Context::new().with_allocator(frames.clone());
    let pool = ThreadPool::new(1).unwrap();
    let launch = launch(&pool.executor()).context(&context);
    let found = launch.start(foreign_library()).wait().unwrap();
    format!("{}, and {} frames left", found == Some(frames), counting.live())
}
