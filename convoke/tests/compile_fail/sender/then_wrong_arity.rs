//! The closure of `then` takes no argument.

use convoke_sender::prelude::*;

fn main() {
    let _ = just(1).then(|| 2);
}
