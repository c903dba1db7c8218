//! P3149R1, *async_scope*: work that is started at any time, and is never detached.

pub(crate) mod deadlock;
pub(crate) mod listener;
pub(crate) mod pairs;
pub(crate) mod parallel;
pub(crate) mod spawn_future;
pub(crate) mod window;
pub(crate) mod within_a_task;
pub(crate) mod work_items;

use super::Example;

pub(crate) const EXAMPLES: &[Example] = &[
    Example::new("p3149::pairs", "2.1", pairs::run),
    Example::new("p3149::work_items", "3.1", work_items::run),
    Example::new("p3149::within_a_task", "4.1", within_a_task::run),
    Example::new("p3149::window", "4.2", window::run),
    Example::new("p3149::parallel", "4.3", parallel::run),
    Example::new("p3149::listener", "4.4", listener::run),
    Example::new("p3149::spawn_future", "5.5", spawn_future::run),
    Example::new("p3149::deadlock", "5.6", deadlock::run),
];
