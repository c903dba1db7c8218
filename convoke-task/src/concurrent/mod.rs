//! A function over many items, several at a time, inside one task: [`map_concurrent()`] and [`for_each_concurrent()`].
//!
//! | file | what is in it |
//! | --- | --- |
//! | `source.rs` | where items come from: an iterator, or a stream |
//! | `lanes.rs` | where their futures run: as many rooms as the limit allows, used again and again |
//! | `engine.rs` | takes items, runs them, hands out results, and brings all home when it is over |
//! | `map.rs` `for_each.rs` | the two faces |

mod engine;
mod for_each;
mod lanes;
mod map;
mod source;

pub use for_each::{EachOutput, ForEachConcurrent, for_each_concurrent};
pub use map::{CloseMap, MapConcurrent, NextMapped, map_concurrent};
pub use source::{FromIterator, FromStream, Items, Iterated, Source, Streamed};
