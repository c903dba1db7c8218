//! P1662R0, *Lifetime extension of async scopes*: two resources without nesting,
//! closed in reverse order at the end of the block.
//!
//! `co_await std::string key = get_key();` is `let key = c.push(get_key());`, in a
//! block that is `cleanups(async |c| …)`.

use std::sync::{Arc, Mutex};

use convoke::cleanup::cleanups;
use convoke::prelude::*;

type Log = Arc<Mutex<Vec<String>>>;

struct Entry(&'static str, Log);

impl AsyncClose for Entry {
    type Error = Never;

    async fn close(self, _: Exit) -> Result<(), Never> {
        checkpoint().await;
        self.1.lock().unwrap().push(format!("{} closed", self.0));
        Ok(())
    }
}

async fn example(log: &Log) -> Result<(), Never> {
    cleanups(async |c| {
        let key = c.push(Entry("key", log.clone()));
        let value = c.push(Entry("value", log.clone()));
        log.lock().unwrap().push(format!("{} and {}", key.0, value.0));
        Ok(())
    })
    .await
}

pub(crate) fn run() -> String {
    let log = Log::default();
    let Ok(()) = block_on(example(&log)).unwrap();
    log.lock().unwrap().join(", ")
}
