//! A `select!` without a branch.
use convoke::prelude::*;

fn main() {
    let _ = block_on(async { convoke::select! {} });
}
