//! The fuzz target of this crate, for a moment. `cargo xtask fuzz --only postgres` runs it with libFuzzer.

#[path = "../../../../convoke-http/tests/it/fuzz/runner.rs"]
mod runner;
mod target;

#[test]
fn postgres() {
    runner::run("postgres", target::target, 20_000);
}
