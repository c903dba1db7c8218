//! `Lawless`: a source whose behaviour the test chooses.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use convoke::Panic;
use convoke::driver::transfer::{Inward, Transfer};
use convoke::driver::{Address, InFlight, Interest, OperationId, RequestMut, Source, Submitted, Ticket};
use convoke::prelude::*;

pub(crate) type OnSubmit = fn(&Lawless, InFlight) -> Submitted;
pub(crate) type OnCancel = fn(&Lawless, OperationId) -> Option<InFlight>;

/// A source that calls the functions of the test, and can store operations.
pub(crate) struct Lawless {
    pub(crate) kept: Mutex<Vec<InFlight>>,
    on_submit: OnSubmit,
    on_cancel: OnCancel,
    pub(crate) is_gone: Arc<AtomicBool>,
    pub(crate) was_gone: Arc<AtomicBool>,
}

impl Lawless {
    pub(crate) fn new(on_submit: OnSubmit, on_cancel: OnCancel) -> Arc<Self> {
        Arc::new(Self {
            kept: Mutex::default(),
            on_submit,
            on_cancel,
            is_gone: Arc::default(),
            was_gone: Arc::default(),
        })
    }

    pub(crate) fn keep(&self, operation: InFlight) -> Submitted {
        self.kept.lock().unwrap().push(operation);
        Submitted::Kept
    }

    pub(crate) fn take(&self) -> Option<InFlight> {
        self.kept.lock().unwrap().pop()
    }

    pub(crate) fn find(&self, id: OperationId) -> Option<InFlight> {
        let mut kept = self.kept.lock().unwrap();
        let found = kept.iter().position(|operation| operation.id() == id)?;
        Some(kept.remove(found))
    }

    /// Finishes a stored operation: fills its buffer with sevens.
    pub(crate) fn finish_one(&self) -> bool {
        let Some(mut operation) = self.take() else { return false };
        let mut length = 0;
        if let RequestMut::Read(buffer) = operation.request_mut() {
            buffer.fill(7);
            length = buffer.len();
        }
        drop(operation.finish(Ok(length)));
        true
    }

    pub(crate) fn read<B: AsMut<[u8]>>(self: &Arc<Self>, buffer: B) -> Transfer<B, Inward> {
        Transfer::new(self.clone(), buffer)
    }
}

impl Drop for Lawless {
    fn drop(&mut self) {
        self.is_gone.store(true, Ordering::Release);
    }
}

impl fmt::Debug for Lawless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lawless")
    }
}

impl Source for Lawless {
    fn submit(&self, operation: InFlight) -> Submitted {
        (self.on_submit)(self, operation)
    }

    fn cancel(&self, operation: OperationId) -> Option<InFlight> {
        (self.on_cancel)(self, operation)
    }

    fn watch(&self, _: Interest, _: Ticket, _: &Waker) -> Option<Ticket> {
        None
    }

    fn unwatch(&self, _: Interest, _: Ticket) {}

    fn local_address(&self) -> io::Result<Address> {
        Ok(Address::Unnamed)
    }
}

/// Waits until the source has stored this many operations.
pub(crate) async fn kept(source: &Lawless, operations: usize) {
    while source.kept.lock().unwrap().len() != operations {
        checkpoint().await;
    }
}

/// Polls a future once, which must be pending.
pub(crate) async fn poll_once<F: Future>(mut future: Pin<&mut F>) {
    let waits = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await;
    assert!(waits, "the future is not pending");
}

/// Polls a future, and catches its panic.
pub(crate) async fn caught<F: Future>(future: F) -> Result<F::Output, Panic> {
    let mut future = Some(Box::pin(future));
    poll_fn(|cx| {
        let polled = Panic::catch(|| future.as_mut().expect("not polled after its end").as_mut().poll(cx));
        match polled {
            Ok(polled) => polled.map(Ok),
            Err(panic) => {
                future = None;
                Poll::Ready(Err(panic))
            }
        }
    })
    .await
}
