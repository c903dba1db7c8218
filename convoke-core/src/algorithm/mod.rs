//! The sender algebra: one file per algorithm, each with its sender, its receiver or operation, and its tests.

pub mod continuation;
pub mod defer;
pub mod dematerialize;
pub mod either;
pub mod from_callback;
pub mod into_result;
pub mod just;
pub mod just_error;
pub mod just_from;
pub mod just_stopped;
pub mod let_error;
pub mod let_stopped;
pub mod let_value;
pub mod map_error;
pub mod materialize;
pub mod never;
pub mod read_env;
pub mod schedule;
pub mod stopped_as_error;
pub mod stopped_as_option;
pub mod then;
pub mod transpose;
pub mod upon_error;
pub mod upon_stopped;
