//! Nobody would take the value.
use convoke::sender::prelude::*;

fn main() {
    let scope = CountingScope::new();
    scope.spawn(just(1_u32), &Env::new()).unwrap();
}
