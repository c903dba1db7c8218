//! A sleep that is not awaited does nothing, and the warning says so.
#![deny(unused_must_use)]
use std::time::Duration;

use convoke::prelude::*;

fn main() {
    let _ = block_on(async {
        sleep(Duration::from_secs(1));
    });
}
