//! The guide: how to write programs with Convoke, one module for each chapter. Every example is compiled and run by the tests.
//!
//! | chapter | contents |
//! | --- | --- |
//! | [`first_steps`] | a program, a scope, children, their results |
//! | [`scopes_and_errors`] | how failures travel; which scope to use; policies and bounds |
//! | [`stopping_and_clean_up`] | what a stop is, what it waits for, and how to shield work from it |
//! | [`servers`] | a server in one call, its end, signals |
//! | [`more_than_one_machine`] | drain, readiness, leases, idempotence, and which engine for what |
//! | [`fairness_and_cores`] | what runs where, the budget, tasks that starve others |
//! | [`testing_and_simulation`] | virtual time, a stop at every `await`, simulated networks |
//! | [`executors_and_performance`] | what runs where, and how to choose |
//! | [`senders`] | work composed as values |
//! | [`coming_from_tokio`] | names and differences |
//! | [`adopting`] | one handler at a time: Convoke inside tokio, tokio inside Convoke |
//! | [`complaints`] | what others complain of, and a program for each |
//! | [`decisions`] | what was chosen, instead of what, and when to choose again |
//! | [`evidence`] | what the papers predict, measured |

pub mod adopting;
#[cfg(feature = "net")]
pub mod coming_from_tokio;
pub mod complaints;
pub mod decisions;
pub mod evidence;
pub mod executors_and_performance;
#[cfg(all(feature = "net", feature = "macros"))]
pub mod fairness_and_cores;
pub mod first_steps;
pub mod more_than_one_machine;
pub mod scopes_and_errors;
#[cfg(feature = "sender")]
pub mod senders;
#[cfg(feature = "net")]
pub mod servers;
pub mod stopping_and_clean_up;
#[cfg(all(feature = "sim", feature = "macros"))]
pub mod testing_and_simulation;
