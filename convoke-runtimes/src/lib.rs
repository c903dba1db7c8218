//! Convoke as the runtime of other crates that ask for one by a trait: their sockets, timers and clock are Convoke's, and the
//! tasks that they spawn are children of a scope. No tokio runtime is involved. Each crate has a feature, and a module:
//!
//! | feature | crate | module |
//! | --- | --- | --- |
//! | `quinn` | [quinn](https://docs.rs/quinn) 0.11: QUIC | [`quic`] |
//! | `hickory` | [hickory-resolver](https://docs.rs/hickory-resolver) 0.26: DNS | [`dns`] |
//!
//! Crates that need tokio itself run through `convoke_tokio::tokio_guest`.
//!
//! # Tasks that other crates spawn
//! Such a crate spawns tasks and forgets them: the drivers of its connections. Here they live as long as a body:
//! [`Quic::run`](quic::Quic::run), [`Dns::run`](dns::Dns::run). When the body has ended, or was stopped, the tasks have
//! [`CLOSE_TIME`] to end by themselves, which they do when all handles to their connections are dropped: they send what
//! their peers must hear. Those that are left are dropped. Only then does `run` return. `convoke::inspect::tree()` shows them.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(feature = "hickory", feature = "quinn"))]
mod background;
#[cfg(feature = "hickory")]
#[cfg_attr(docsrs, doc(cfg(feature = "hickory")))]
pub mod dns;
#[cfg(feature = "quinn")]
#[cfg_attr(docsrs, doc(cfg(feature = "quinn")))]
pub mod quic;

use core::time::Duration;

/// Time that tasks of other crates have to end, when the body that they served has ended.
pub const CLOSE_TIME: Duration = Duration::from_secs(5);
