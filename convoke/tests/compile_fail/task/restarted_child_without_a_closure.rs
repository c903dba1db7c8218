//! A child that is restarted is made again for each attempt.
use std::time::Duration;

use convoke::prelude::*;
use convoke::retry::Backoff;

fn main() {
    let _ = block_on(async {
        scope(async |s| {
            s.child().restart(Backoff::constant(Duration::ZERO)).spawn(async { Err("once") });
            Ok::<(), &str>(())
        })
        .await
    });
}
