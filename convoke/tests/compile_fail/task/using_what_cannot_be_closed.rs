// A resource without an async close.

use convoke::prelude::*;
use convoke::task::task;

struct Plain;

fn main() {
    let _ = task(async { using(Plain, async |_| 7).await });
}
