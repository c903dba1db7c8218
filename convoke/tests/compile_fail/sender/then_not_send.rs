//! The closure of `then` holds what may not go to another thread.

use std::rc::Rc;

use convoke_sender::prelude::*;

fn main() {
    let local = Rc::new(1);
    let _ = just(1).then(move |value| value + *local);
}
