//! A function over many items, several at a time, inside one task: [`map_concurrent()`] and
//! [`for_each_concurrent()`].
//!
//! Use [`map_concurrent()`] for results, and [`for_each_concurrent()`] for a loop without results.

// The engine (`engine`) takes items from a source (`source`: an iterator or a stream) while there is a free
// lane, and makes a future of each. A lane (`lanes`) is a boxed slot for a future, with a waker of its own,
// and is reused; there are at most `limit` of them. Only woken lanes are polled. When it is over early,
// because of a stop, a panic or a close, the engine takes no more items, asks the running futures to stop,
// and waits for them. All of it runs in the polls of one task.

mod engine;
mod for_each;
mod lanes;
mod map;
mod source;

pub use for_each::{EachOutput, ForEachConcurrent, for_each_concurrent};
pub use map::{CloseMap, MapConcurrent, NextMapped, map_concurrent};
pub use source::{FromIterator, FromStream, ItemSource, Items, Iterated, Streamed};
