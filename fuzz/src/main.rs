//! libFuzzer around the target that the variable `CONVOKE_FUZZ_TARGET` names.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

#[path = "../../convoke-http/tests/it/fuzz/targets/mod.rs"]
mod targets;

#[path = "../../convoke-postgres/tests/it/fuzz/target.rs"]
mod postgres;

static TARGET: LazyLock<targets::Target> = LazyLock::new(|| {
    let wanted = std::env::var("CONVOKE_FUZZ_TARGET").unwrap_or_default();
    let all = || targets::ALL.into_iter().chain([("postgres", postgres::target as targets::Target)]);
    let found = all().find(|(name, _)| *name == wanted);
    let names: Vec<_> = all().map(|(name, _)| name).collect();
    found.unwrap_or_else(|| panic!("CONVOKE_FUZZ_TARGET is `{wanted}`, and not one of {names:?}")).1
});

fuzz_target!(|data: &[u8]| TARGET(data));
