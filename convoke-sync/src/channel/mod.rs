//! The channel under [`mpsc`](super::mpsc) and [`mpmc`](super::mpmc).
//!
//! `Queue` is what both halves share. A call that does not wait takes its lock, moves a message and wakes a
//! waiter of the other half. A call that has to wait is a future, `SendMessage` or `Receive`, with a node in
//! the queue. The rules of handing messages over are at the head of `queue`.
//!
//! | module | contents |
//! | --- | --- |
//! | `queue` | the messages, the counts of senders and receivers, the waiters |
//! | `sender` | the public sending half; the receiving halves are in `mpsc` and `mpmc` |
//! | `send`, `receive` | the futures that send and receive a message |
//! | `reserve` | the future that reserves a slot, and the permits that hold one |
//! | `error` | the error types |

mod error;
mod queue;
mod receive;
mod reserve;
mod send;
mod sender;

pub use error::{Closed, SendError, TryRecvError, TrySendError};
pub(super) use queue::{LISTENERS, LISTS, Queue};
pub use receive::Receive;
pub use reserve::{OwnedSendPermit, Reserve, SendPermit};
pub use send::SendMessage;
pub use sender::Sender;
