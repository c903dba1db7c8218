//! A child may borrow from around a blocking scope, not from its body, which ends before the child.

use convoke::prelude::*;
use convoke::blocking_scope;

fn main() {
    let pool = ThreadPool::new(1).unwrap();
    blocking_scope(&pool.executor(), |s| {
        let inside = String::from("inside");
        s.spawn(async { println!("{inside}") });
    });
}
