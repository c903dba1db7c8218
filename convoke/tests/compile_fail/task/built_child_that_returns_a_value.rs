//! The scope has no use for the value; a handle has.
use convoke::prelude::*;

fn main() {
    let _ = block_on(async {
        scope(async |s| {
            s.named("counts").spawn(async { 5 });
        })
        .await
    });
}
