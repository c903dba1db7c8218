//! The README, which is the front page of the docs.

use std::time::Duration;

use convoke::env::Local;
use convoke::env::{current, with_local};
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::testing::{Ended, Probe};

use super::{explore, explore_with};

async fn fetch(page: u32) -> Result<String, String> {
    if page == 3 { Err(format!("no page {page}")) } else { Ok(format!("page {page}")) }
}

async fn fetch_both() -> Result<String, String> {
    scope(async |s| {
        let _heartbeat = s.spawn_future(async { never::<()>().await });
        let (one, other) = (s.spawn_future(fetch(1)), s.spawn_future(fetch(3)));
        Ok(one.await? + &other.await?)
    })
    .await
}

/// "Children live in a scope."
#[test]
fn the_heartbeat_ends_with_the_scope() {
    let exploration = explore(Outcome::Value(Err("no page 3".to_owned())), fetch_both);
    assert!(exploration.ended(Ended::Stopped) > 0, "{exploration}");
}

struct Transaction(Probe);

impl AsyncClose for Transaction {
    type Error = Never;

    async fn close(self, exit: Exit) -> Result<(), Never> {
        assert!(exit.is_stopped());
        sleep(Duration::from_millis(1)).await;
        self.0.cleaned_up("the transaction");
        Ok(())
    }
}

/// "A stop awaits the clean-up."
#[test]
fn a_transaction_is_rolled_back_before_the_timeout_returns() {
    let exploration = explore_with(Ended::Value, |probe| {
        let probe = probe.clone();
        async move {
            probe.acquired("the transaction");
            let transfer = using(Transaction(probe), async |_transaction| never::<()>().await);
            assert!(timeout(Duration::from_millis(5), transfer).await.is_err());
        }
    });
    assert!(exploration.ended(Ended::Stopped) > 0, "{exploration}");
}

static REQUEST: Local<u64> = Local::inherited("request id");

/// "The environment travels down, invisibly."
#[test]
fn a_child_knows_the_request() {
    explore(Outcome::Value("[request Some(7)] hello".to_owned()), || {
        let log_line = |what| format!("[request {:?}] {what}", current::local(&REQUEST));
        let handle =
            async move { scope(async |s| s.spawn_future(async move { log_line("hello") }).await).await };
        with_local(&REQUEST, 7, handle)
    });
}

/// "Senders underneath": the loop replaces the pool of the example.
#[test]
fn a_task_awaits_an_order() {
    explore(Outcome::Value(58), || async {
        let executor = current::executor();
        let price = schedule(&executor).then(|()| 19);
        let stock = schedule(&executor).then(|()| 3);
        let order = when_all((price, stock)).then(|(price, stock)| price * stock);
        order.await + 1
    });
}
