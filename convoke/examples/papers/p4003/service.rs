//! P4003R1 §4.3: services of an execution context, made when they are first asked
//! for, and ended in reverse order.
//!
//! A service is also *closed*, which is awaited, before it is shut down. One of the
//! paper's `key_type`s is the `Interface`, which may be a trait.

use std::sync::{Arc, Mutex};

use convoke::executor::{Context, FromContext, Service};
use convoke::prelude::*;

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

struct Resolver {
    log: Arc<Log>,
}

impl Service for Log {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }
}

impl FromContext for Log {
    fn from_context(_: &Context) -> Self {
        Self::default()
    }
}

impl Service for Resolver {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }

    async fn close(&self) {
        checkpoint().await;
        self.log.0.lock().unwrap().push("resolver closed".to_owned());
    }

    fn shutdown(&self) {
        self.log.0.lock().unwrap().push("resolver shut down".to_owned());
    }
}

impl FromContext for Resolver {
    fn from_context(context: &Context) -> Self {
        Self { log: context.use_service::<Log>() } // Which ends after it.
    }
}

pub(crate) fn run() -> String {
    let context = Context::new();
    let log = context.use_service::<Resolver>().log.clone();
    assert!(context.has_service::<Log>());
    block_on(context.close()).unwrap();
    log.0.lock().unwrap().join(", ")
}
