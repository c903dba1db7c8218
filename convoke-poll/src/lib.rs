//! The portable driver of Convoke: the kernel says when a socket is ready, and the driver acts. epoll, kqueue and IOCP.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `driver.rs` | [`PollDriver`]: makes sources, waits for events, shuts down |
//! | `source.rs` | a socket: what is tried at once, what waits |
//! | `state.rs` | what a source shares with the driver: its socket, its readiness, the two lines of those who wait |
//! | `attempts.rs` | what a source does at once |
//! | `readiness.rs` | what is known about a source: the state machine, in one word |
//! | `registry.rs` | which source an event is for |
//! | `bell.rs` | whether somebody has woken the driver |
//! | `count.rs` | how many wait, and who wants to hear when nobody does |
//! | `poller/` | the kernel's way of saying that something is ready: `epoll.rs` where there is one, `portable.rs`; `alertness.rs`: whether it looks for a while before it sleeps |
//! | `socket.rs` | a socket with its descriptor at hand |
//! | `sockets.rs`, `addresses.rs`, `options.rs`, `calls.rs` | how sockets are made, named, set up and used |
//!
//! Programs use the facade crate `convoke`, which picks a driver.

mod addresses;
mod attempts;
#[doc(hidden)]
pub mod bell;
mod calls;
#[doc(hidden)]
pub mod count;
mod driver;
mod options;
mod poller;
#[doc(hidden)]
pub mod readiness;
#[doc(hidden)]
pub mod registry;
mod socket;
mod sockets;
mod source;
mod state;

pub use driver::{EVENTS_AT_ONCE, PollDriver, SPIN};
