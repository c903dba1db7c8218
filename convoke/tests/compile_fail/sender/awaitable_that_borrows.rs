use convoke::sender::prelude::*;

fn length(text: &str) -> impl AwaitableSender<Value = usize, Error = Never> {
    just(text).then(str::len)
}

fn main() {
    let _ = length("text");
}
