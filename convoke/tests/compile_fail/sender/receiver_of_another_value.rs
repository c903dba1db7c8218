//! A receiver for another value than that of the sender.

use convoke_sender::Receiver;
use convoke_sender::prelude::*;

struct Text(Env);

impl Receiver<String, Never> for Text {
    fn complete(self, _: Outcome<String>) {}

    fn env(&self) -> &Env {
        &self.0
    }
}

fn main() {
    let _ = just(1).connect(Text(Env::new()));
}
