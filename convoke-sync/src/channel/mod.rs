//! The channel under [`mpsc`](super::mpsc) and [`mpmc`](super::mpmc): `queue.rs` is what is shared, `sender.rs` who sends, `send.rs`
//! and `receive.rs` the two that wait, `error.rs` what they say.

mod error;
mod queue;
mod receive;
mod send;
mod sender;

pub use error::{SendError, TryReceiveError, TrySendError};
pub(super) use queue::Queue;
pub use receive::Receive;
pub use send::SendMessage;
pub use sender::Sender;
