//! `using`, `AsyncClose`, `ensure`, `cleanups` and the grace period.

use std::time::Duration;

use convoke::cleanup::GRACE;
use convoke::cleanup::cleanups;
use convoke::env::with_local;
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::stopped;
use convoke::testing::{Ended, Probe};

use super::explore_with;

/// The connection, transaction or shard of the examples.
struct Resource {
    name: String,
    probe: Probe,
}

impl Resource {
    fn open(name: impl Into<String>, probe: &Probe) -> Self {
        let name = name.into();
        probe.acquired(name.as_str());
        Self { name, probe: probe.clone() }
    }
}

impl AsyncClose for Resource {
    type Error = std::io::Error;

    async fn close(self, _: Exit) -> Result<(), std::io::Error> {
        checkpoint().await;
        self.probe.cleaned_up(self.name);
        Ok(())
    }
}

async fn length(name: &str, probe: Probe) -> std::io::Result<usize> {
    using(Resource::open("a connection", &probe), async |connection| {
        checkpoint().await;
        Ok(connection.name.len() + name.len())
    })
    .await
}

/// `using`.
#[test]
fn a_connection_is_closed() {
    let exploration = explore_with(Ended::Value, |probe| {
        let probe = probe.clone();
        async move { assert_eq!(length("name", probe).await.unwrap(), 16) }
    });
    assert!(exploration.ended(Ended::Stopped) > 0, "{exploration}");
}

/// `AsyncClose`.
#[test]
fn a_transaction_is_closed() {
    explore_with(Ended::Value, |probe| {
        let probe = probe.clone();
        async move {
            let transaction = Resource::open("a transaction", &probe);
            let lines = using(transaction, async |mut transaction| {
                transaction.name.push('.');
                transaction.name.pop();
                transaction.name.len()
            });
            assert_eq!(lines.await.unwrap(), 13);
        }
    });
}

/// `ensure`.
#[test]
fn what_is_ensured_runs_after_a_stop() {
    explore_with(Ended::Stopped, |probe| {
        let probe = probe.clone();
        async move {
            probe.acquired("a count");
            let clean_up = async |exit: Exit| {
                assert!(exit.is_stopped());
                checkpoint().await;
                probe.cleaned_up("a count");
            };
            ensure(clean_up, async { stopped().await }).await
        }
    });
}

/// `cleanups`.
#[test]
fn shards_are_closed() {
    let exploration = explore_with(Ended::Value, |probe| {
        let probe = probe.clone();
        async move {
            let count = cleanups(async |cleanups| {
                let mut shards = Vec::new();
                for n in 0..3 {
                    shards.push(cleanups.push(Resource::open(format!("shard {n}"), &probe)));
                    checkpoint().await;
                }
                probe.acquired("a line about the body");
                let probe = probe.clone();
                cleanups.ensure(async move |_| probe.cleaned_up("a line about the body"));
                Ok::<_, std::io::Error>(shards.len())
            });
            assert_eq!(count.await.unwrap(), 3);
        }
    });
    assert!(exploration.ended(Ended::Stopped) > 2, "{exploration}");
}

/// `GRACE`. The message about the clean-up that did not end goes to the error stream.
#[test]
fn a_clean_up_that_would_never_end_is_given_up() {
    explore_with(Ended::Value, |_| async {
        let program = async { ensure(async |_| never::<()>().await, async { 7 }).await };
        assert_eq!(with_local(&GRACE, Duration::from_millis(1), program).await, 7);
    });
}
