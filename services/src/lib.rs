//! Parts that the tests with real services share with the programs that they start.

use std::env;

/// Returns what the environment says of a service.
///
/// # Panics
/// If it says nothing.
#[track_caller]
pub fn service(variable: &str) -> String {
    env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: `cargo xtask test --only services` starts the services and sets it")
    })
}
