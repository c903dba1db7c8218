//! A future where a sender is needed.

use convoke::sender::prelude::*;

fn main() {
    let _ = sync_wait(async { 5 });
}
