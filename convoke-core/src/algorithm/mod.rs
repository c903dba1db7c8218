//! The sender algebra: one file per algorithm, each with its sender, its receiver or operation, and its tests.

pub mod boxed;
pub mod continuation;
pub mod fork_join;
pub mod gather;
pub mod just;
pub mod just_error;
pub mod just_from;
pub mod just_stopped;
pub mod let_error;
pub mod let_stopped;
pub mod let_value;
pub mod map_error;
pub mod never;
pub mod repeat_n;
pub mod repeat_until;
pub mod retry;
pub mod rounds;
pub mod schedule;
pub mod sequence;
pub mod split;
mod split_state;
pub mod stop_when;
pub mod then;
pub mod when_all;
mod when_all_vec;
pub mod when_any;
