//! The programs of the examples, run with a stop request at every point: they keep their promises wherever
//! the stop comes.
#[allow(dead_code, unreachable_pub, reason = "the program around what is tested")]
#[path = "../../../examples/connection_pool.rs"]
mod connection_pool;
#[allow(dead_code, unreachable_pub, reason = "the program around what is tested")]
#[path = "../../../examples/crawler.rs"]
mod crawler;
#[allow(dead_code, unreachable_pub, reason = "the program around what is tested")]
#[path = "../../../examples/deadline_job.rs"]
mod deadline_job;
#[allow(dead_code, unreachable_pub, reason = "the program around what is tested")]
#[path = "../../../examples/fan_out.rs"]
mod fan_out;
#[allow(dead_code, unreachable_pub, reason = "the program around what is tested")]
#[path = "../../../examples/futurelock.rs"]
mod futurelock;
#[allow(dead_code, unreachable_pub, reason = "the program around what is tested")]
#[path = "../../../examples/pages.rs"]
mod pages;
#[allow(dead_code, unreachable_pub, reason = "the program around what is tested")]
#[path = "../../../examples/tour/scopes.rs"]
mod scopes;
#[allow(dead_code, unreachable_pub, reason = "the program around what is tested")]
#[path = "../../../examples/stop_tree.rs"]
mod stop_tree;
#[allow(dead_code, unreachable_pub, reason = "the program around what is tested")]
#[path = "../../../examples/supervised_workers.rs"]
mod supervised_workers;
#[allow(dead_code, unreachable_pub, reason = "the program around what is tested")]
#[path = "../../../examples/tour/tasks.rs"]
mod tasks;

mod every_part;
mod every_stop;
mod readme_tree;
mod traces;
