//! Nobody would hear of the error.
use convoke::sender::prelude::*;

fn main() {
    let scope = CountingScope::new();
    let work = just_from(|| "1".parse::<u32>()).transpose().then(drop);
    scope.spawn(work, &Env::new()).unwrap();
}
