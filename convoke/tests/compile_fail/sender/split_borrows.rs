//! Shared work that borrows: a consumer that is stopped leaves, and the work goes on after what it borrowed is gone.

use convoke_sender::prelude::*;

fn main() {
    let local = String::new();
    let shared = just_from(|| local.len()).split();
    drop(shared);
}
