//! The compiler's messages for the programs in `tests/compile_fail`, one folder for each subject.
//!
//! The messages are those of one compiler, the stated `rust-version`; with another one they are not compared.
//! Run with `TRYBUILD=overwrite` to accept changed messages.

mod select;
mod senders;
mod tasks;

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Compiles all programs of a subject, and compares the messages with the stored ones.
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

/// Returns the message of one program, and checks that it contains `words`.
pub(crate) fn says(subject: &str, case: &str, words: &[&str]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile_fail").join(subject);
    let message = fs::read_to_string(folder.join(case).with_extension("stderr")).expect("a message");
    for word in words {
        assert!(message.contains(word), "{case} does not say `{word}`\n{message}");
    }
    message
}
