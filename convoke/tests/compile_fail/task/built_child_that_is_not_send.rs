//! A child with options is `Send`, unless it is `local`.
use std::rc::Rc;

use convoke::prelude::*;

fn main() {
    let _ = block_on(async {
        scope(async |s| {
            let shared = Rc::new(1);
            s.named("shares").spawn(async move {
                checkpoint().await;
                drop(shared);
            });
        })
        .await
    });
}
