//! Models of the races in Convoke, which loom runs under every schedule: `tests/loom`, by `cargo xtask test --only loom`.
//!
//! A package of its own, for its dependencies: the feature `loom` compiles all of them once more, and the tests of the
//! facade have many that no model needs.
