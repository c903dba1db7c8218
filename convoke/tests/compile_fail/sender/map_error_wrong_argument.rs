//! The closure of `map_error` takes another type than the error.

use convoke_sender::prelude::*;

fn main() {
    let _ = just_error::<i32, &str>("no").map_error(|error: u32| error);
}
