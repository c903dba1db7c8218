// A resource without an async close.

use convoke::prelude::*;

struct Plain;

fn main() {
    let _ = task(async { using(Plain, async |_| 7).await });
}
