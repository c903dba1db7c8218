//! A record of events in their order, and a resource that notes when it is closed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke::prelude::*;

/// Record of events, in their order.
#[derive(Clone, Default, Debug)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A transaction whose end takes time: some of tokio's, some of Convoke's.
pub(crate) struct Transaction(pub(crate) Log);

impl AsyncClose for Transaction {
    type Error = Never;

    async fn close(self, exit: Exit) -> Result<(), Never> {
        tokio::time::sleep(Duration::from_millis(5)).await;
        sleep(Duration::from_millis(5)).await;
        self.0.note(if exit.is_clean() { "commit" } else { "rollback" });
        Ok(())
    }
}

/// Says when it is dropped.
pub(crate) struct OnDrop(pub(crate) Log, pub(crate) &'static str);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.note(self.1);
    }
}

/// A tokio runtime with worker threads.
pub(crate) fn multi_thread(workers: usize) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap()
}
