//! The two senders of `let_value` fail with different types.

use convoke_sender::prelude::*;

fn main() {
    let _ = just(1).let_value(|_| just_error::<i32, &str>("no"));
}
