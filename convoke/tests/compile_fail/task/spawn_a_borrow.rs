//! Spawned work outlives the function that spawned it.
use convoke::sender::prelude::*;

fn main() {
    let scope = CountingScope::new();
    let text = String::from("mine");
    scope.spawn(just_from(|| println!("{}", text.as_str())), &Env::new()).unwrap();
}
