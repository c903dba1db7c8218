//! P1662R0, *Adding async RAII support to coroutines*: clean-up that is awaited on
//! every exit.

pub(crate) mod async_scope;
pub(crate) mod count_matches;
pub(crate) mod done;
pub(crate) mod flat_scopes;
pub(crate) mod generators;
pub(crate) mod get_records;
pub(crate) mod short_circuit;
pub(crate) mod transform;

use super::Example;

pub(crate) const EXAMPLES: &[Example] = &[
    Example::new("p1662::count_matches", "p. 4", count_matches::run),
    Example::new("p1662::async_scope", "p. 5", async_scope::run),
    Example::new("p1662::generators", "p. 7", generators::run),
    Example::new("p1662::get_records", "p. 8", get_records::run),
    Example::new("p1662::flat_scopes", "p. 17", flat_scopes::run),
    Example::new("p1662::done", "p. 23", done::run),
    Example::new("p1662::transform", "p. 26", transform::run),
    Example::new("p1662::short_circuit", "p. 30", short_circuit::run),
];
