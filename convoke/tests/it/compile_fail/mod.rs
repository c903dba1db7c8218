//! What the compiler says of the programs in `tests/compile_fail`: a folder for each subject.
//!
//! The messages are those of one compiler, the stated `rust-version`; with another one there is nothing to compare.
//! To accept changed messages run with `TRYBUILD=overwrite`.

mod senders;
mod tasks;

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Compiles them all, and compares what is said with what was said.
pub(crate) fn refuses_them_all(subject: &str) {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("rustc runs");
    let version = String::from_utf8_lossy(&version.stdout);
    if !version.starts_with(concat!("rustc ", env!("CARGO_PKG_RUST_VERSION"), ".")) {
        eprintln!("skipped: the messages are those of {}, not of {version}", env!("CARGO_PKG_RUST_VERSION"));
        return;
    }
    trybuild::TestCases::new().compile_fail(format!("tests/compile_fail/{subject}/*.rs"));
}

/// What is said of one of them. It has all of these words.
pub(crate) fn says(subject: &str, case: &str, words: &[&str]) -> String {
    let room = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile_fail").join(subject);
    let message = fs::read_to_string(room.join(case).with_extension("stderr")).expect("a message");
    for word in words {
        assert!(message.contains(word), "{case} does not say `{word}`\n{message}");
    }
    message
}
