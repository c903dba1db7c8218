use convoke::prelude::*;

fn main() {
    let _ = block_on(async { race((async { 1 }, async { "a" })).await });
}
