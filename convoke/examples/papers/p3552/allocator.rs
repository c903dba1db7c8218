//! P3552R2 §4.6: the frames of a task come from an allocator that its caller
//! chooses.
//!
//! The paper passes the allocator as an argument of the coroutine. Here it is part
//! of the environment: `fun` has no parameter for it, and can still ask for it.

use convoke::alloc::{Bounded, FrameAllocator};
use convoke::env::{Changes, current};
use convoke::sender::prelude::*;

async fn fun(value: u32) -> (u32, FrameAllocator) {
    let allocator = current::env(|env| env.unwrap().allocator().clone());
    (value, allocator)
}

pub(crate) fn run() -> String {
    let by_default = sync_wait(task(fun(17))).unwrap();
    let resource = FrameAllocator::new(Bounded::new(2048));
    let changes = Changes::new().allocator(resource.clone());
    let chosen = sync_wait_with(changes, task(fun(17))).unwrap();
    assert_eq!(by_default, (17, FrameAllocator::default()));
    assert_eq!(chosen, (17, resource));
    "17 by default, 17 in 2048 bytes".to_owned()
}
