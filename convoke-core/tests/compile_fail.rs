//! What must not compile, and what the compiler says then: at the call, in few lines, in our words.
//!
//! The messages are those of one compiler, the stated `rust-version`; with another one there is nothing to compare.
//! To accept changed messages run with `TRYBUILD=overwrite`.

#![cfg(not(feature = "loom"))]

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// A wrong closure is an everyday mistake: its message fits into this many lines,
const LINES: usize = 15;

/// and says these words.
const BRIEF: [(&str, &[&str]); 5] = [
    ("then_wrong_argument", &["then", "String", "{integer}"]),
    ("then_wrong_arity", &["then", "argument"]),
    ("let_value_plain_value", &["is not a sender", "just(value)"]),
    ("let_value_wrong_argument", &["let_value", "String"]),
    ("map_error_wrong_argument", &["map_error", "u32", "&str"]),
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
fn a_wrong_closure_is_explained_in_few_lines() {
    let room = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile_fail");
    for (case, words) in BRIEF {
        let message = fs::read_to_string(room.join(case).with_extension("stderr")).expect("a message");
        let lines = message.trim_end().lines().count();
        assert!(lines <= LINES, "{case}: {lines} lines\n{message}");
        for word in words {
            assert!(message.contains(word), "{case} does not say `{word}`\n{message}");
        }
    }
}
