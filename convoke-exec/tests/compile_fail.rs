//! What must not compile, and what the compiler says then: at the call, in our words.
//!
//! The messages are those of one compiler, the stated `rust-version`; with another one there is nothing to compare.
//! To accept changed messages run with `TRYBUILD=overwrite`.

#![cfg(not(feature = "loom"))]

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// What each message says.
const WORDS: [(&str, &[&str]); 9] = [
    ("using_what_cannot_be_closed", &["`Plain` cannot be closed by awaiting", "ensure(async |exit|"]),
    ("close_error_has_nowhere_to_go", &["does not fit a body that returns `Count`", "Ok(value)", "From<"]),
    ("close_not_send", &["cannot be sent between threads safely"]),
    ("blocking_handle_leaves", &["lifetime may not live long enough"]),
    ("blocking_scope_borrows_the_body", &["may outlive borrowed value `inside`"]),
    ("spawn_a_value", &["nobody to give a `u32` to", ".then(drop)", "spawn_future"]),
    ("spawn_an_error", &["nobody to tell of an error of type `ParseIntError`", "upon_error", "spawn_future"]),
    ("spawn_a_borrow", &["may outlive the current function", "`move` keyword"]),
    ("spawn_future_not_send", &["cannot be sent between threads safely"]),
];

#[test]
fn what_must_not_compile_says_why() {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("rustc runs");
    let version = String::from_utf8_lossy(&version.stdout);
    if !version.starts_with(concat!("rustc ", env!("CARGO_PKG_RUST_VERSION"), ".")) {
        eprintln!("skipped: the messages are those of {}, not of {version}", env!("CARGO_PKG_RUST_VERSION"));
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}

#[test]
fn the_messages_say_what_to_do() {
    let room = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile_fail");
    for (case, words) in WORDS {
        let message = fs::read_to_string(room.join(case).with_extension("stderr")).expect("a message");
        for word in words {
            assert!(message.contains(word), "{case} does not say `{word}`\n{message}");
        }
    }
}
