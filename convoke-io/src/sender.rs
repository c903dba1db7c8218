//! The sender interface of transfers: `Sender for Transfer`.

#![allow(unsafe_code)]

use std::io;

use convoke_core::Never;
use convoke_sender::{Receiver, ReceiverOf, Sender};

use crate::transfer::{Direction, Transfer, TransferOperation};

// SAFETY: `Sender` requires that the receiver is completed at most once and that the operation is not touched
// afterwards. `TransferOperation` completes it only in `complete`, as its last step (rule 2 there: one
// winner).
#[diagnostic::do_not_recommend]
unsafe impl<B: Send, D: Direction<B>> Sender for Transfer<B, D> {
    type Value = (io::Result<usize>, B);
    type Error = Never;
    type Operation<R: Receiver<Self::Value, Never>> = TransferOperation<B, D, ReceiverOf<R>>;

    fn connect<R: Receiver<Self::Value, Never>>(self, receiver: R) -> Self::Operation<R> {
        Self::connect(self, ReceiverOf(receiver))
    }
}
