//! The handle of a child does not leave its blocking scope.

use convoke::prelude::*;
use convoke::blocking_scope;

fn main() {
    let pool = ThreadPool::new(1).unwrap();
    let handle = blocking_scope(&pool.executor(), |s| s.spawn_future(async { 1 }));
    let _ = handle.wait();
}
