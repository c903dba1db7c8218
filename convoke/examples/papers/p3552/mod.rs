//! P3552R2, *Add a Coroutine Task Type*: the task, what it awaits, and its
//! environment.

pub(crate) mod a_million;
pub(crate) mod allocator;
pub(crate) mod environment;
pub(crate) mod errors;
pub(crate) mod hello;
pub(crate) mod nested;
pub(crate) mod pop;
pub(crate) mod reschedule;
pub(crate) mod results;
pub(crate) mod spawn;

use super::Example;

pub(crate) const EXAMPLES: &[Example] = &[
    Example::new("p3552::hello", "intro", hello::run),
    Example::new("p3552::nested", "4.1", nested::run),
    Example::new("p3552::results", "4.4", results::run),
    Example::new("p3552::pop", "4.4", pop::run),
    Example::new("p3552::spawn", "4.5", spawn::run),
    Example::new("p3552::reschedule", "4.5", reschedule::run),
    Example::new("p3552::allocator", "4.6", allocator::run),
    Example::new("p3552::environment", "4.7", environment::run),
    Example::new("p3552::errors", "4.9", errors::run),
    Example::new("p3552::a_million", "4.10", a_million::run),
];
