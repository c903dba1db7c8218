//! Dropping a handle stops the child, and the warning says so.
#![deny(unused_must_use)]
use convoke::prelude::*;

fn main() {
    let _ = block_on(async {
        scope(async |s| {
            s.spawn_future(async { 5 });
            s.child();
        })
        .await
    });
}
