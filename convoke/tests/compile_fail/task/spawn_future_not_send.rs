//! The result is kept, and may be taken by another thread than the one it was made on.
use convoke::sender::prelude::*;

fn main() {
    let scope = CountingScope::new();
    let _future = scope.spawn_future(just_from(|| std::rc::Rc::new(1)), &Env::new()).unwrap();
}
