//! A short run of each fuzz target, without libFuzzer: stored inputs, and changes of them by chance. The same ones every time.
//!
//! `CONVOKE_ROUNDS=n` sets the number of inputs, `CONVOKE_SEED=n` runs the input of that seed alone. `cargo xtask fuzz` runs the
//! targets with libFuzzer.

mod runner;
pub(crate) mod targets;

/// The number of inputs of a target that opens connections, and of one that only reads.
const CASES: u64 = 400;
const QUICK_CASES: u64 = 20_000;

fn run(name: &str, cases: u64) {
    let (_, target) = targets::ALL.into_iter().find(|(it, _)| *it == name).expect("a target of that name");
    runner::run(name, target, cases);
}

#[test]
fn addresses() {
    run("addresses", QUICK_CASES);
}

#[test]
fn client() {
    run("client", CASES);
}

#[test]
fn http1() {
    run("http1", CASES);
}

#[test]
fn http2() {
    run("http2", CASES);
}

#[test]
fn proxies() {
    run("proxies", QUICK_CASES);
}

#[test]
fn tls() {
    run("tls", CASES / 4);
}

#[test]
fn tunnel() {
    run("tunnel", CASES);
}
