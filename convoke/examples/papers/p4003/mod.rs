//! P4003R1, *Coroutines for I/O*: executor, stop token and frame allocator, from
//! the launch to the last operation.

pub(crate) mod any_read_stream;
pub(crate) mod awaitable;
pub(crate) mod compiled_once;
pub(crate) mod connection;
pub(crate) mod context_allocator;
pub(crate) mod environment;
pub(crate) mod executor;
pub(crate) mod handlers;
pub(crate) mod launcher;
pub(crate) mod run;
pub(crate) mod run_async;
pub(crate) mod service;
pub(crate) mod window;

use super::Example;

pub(crate) const EXAMPLES: &[Example] = &[
    Example::new("p4003::awaitable", "3.1", awaitable::run),
    Example::new("p4003::environment", "3.3", environment::run),
    Example::new("p4003::run_async", "3.4", run_async::run),
    Example::new("p4003::run", "3.4", run::run),
    Example::new("p4003::launcher", "3.5", launcher::run),
    Example::new("p4003::executor", "4", executor::run),
    Example::new("p4003::service", "4.3", service::run),
    Example::new("p4003::context_allocator", "4.3", context_allocator::run),
    Example::new("p4003::handlers", "5.2", handlers::run),
    Example::new("p4003::window", "5.4", window::run),
    Example::new("p4003::compiled_once", "6.3", compiled_once::run),
    Example::new("p4003::connection", "A.4", connection::run),
    Example::new("p4003::any_read_stream", "B", any_read_stream::run),
];
