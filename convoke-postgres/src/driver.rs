//! The task of a connection: does its I/O, hears notifications, and ends when the client half is dropped or the
//! connection is cut.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use convoke_sync::{Event, mpsc};
use tokio_postgres::{AsyncMessage, Notification};

use crate::connecting::Wire;

/// Destination of a connection's notifications.
pub(crate) enum Wiring {
    /// Nobody listens.
    None,
    /// To a listener. While its buffer is full, nothing is read from the server.
    Listener(mpsc::Sender<Notification>),
}

impl Wiring {
    pub(crate) fn is_listener(&self) -> bool {
        matches!(self, Self::Listener(_))
    }
}

/// Drives a connection to its end: the client half was dropped and said goodbye, the connection broke, or it is cut.
pub(crate) async fn drive(mut wire: Wire, wiring: Wiring, cut: &Event, pool_is_cut: &Event) {
    let (mut cut, mut pool_is_cut) = (pin!(cut.wait()), pin!(pool_is_cut.wait()));
    loop {
        let message = poll_fn(|cx| {
            if cut.as_mut().poll(cx).is_ready() || pool_is_cut.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            wire.poll_message(cx)
        });
        match (message.await, &wiring) {
            (Some(Ok(AsyncMessage::Notification(notification))), Wiring::Listener(listener)) => {
                // A listener that is gone hears no more.
                let _ = listener.send(notification).await;
            }
            (Some(Ok(_)), _) => {}
            // The client half sees the same: its statements fail with "connection closed".
            (Some(Err(_)) | None, _) => return,
        }
    }
}
