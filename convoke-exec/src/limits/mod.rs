//! Limits to how a stop reaches a part of a task: how long it may run, and what must not be stopped.

mod shield;

pub use shield::{Shield, shield};
