//! A plain value where an executor is needed.

use convoke_core::prelude::*;

fn main() {
    let _ = schedule(&5);
}
