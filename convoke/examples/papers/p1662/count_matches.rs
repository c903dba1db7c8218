//! P1662R0, *Motivation*: a file that is closed by awaiting, on every way out of
//! its scope.
//!
//! `co_using (auto file : open_file_async()) { … }` is `using(open_file(), async
//! |file| …)`.

use convoke::prelude::*;
use convoke::task::{Generator, generator};

#[derive(Clone, Default)]
struct Log(std::sync::Arc<std::sync::Mutex<Vec<&'static str>>>);

struct File {
    records: [&'static str; 4],
    log: Log,
}

impl AsyncClose for File {
    type Error = Never;

    async fn close(self, _: Exit) -> Result<(), Never> {
        checkpoint().await; // The disk takes its time.
        self.log.0.lock().unwrap().push("closed");
        Ok(())
    }
}

fn read_records(file: &File) -> Generator<&'static str, impl Future<Output = ()>> {
    let records = file.records;
    generator(async move |y| {
        for record in records {
            checkpoint().await;
            y.yield_value(record).await;
        }
    })
}

async fn count_matches(pattern: &str, log: Log) -> usize {
    let file = File { records: ["bob", "alice", "bobby", "eve"], log };
    using(file, async |file| {
        let mut count = 0;
        let mut records = read_records(&file);
        while let Some(record) = records.next().await {
            count += usize::from(record.starts_with(pattern));
        }
        count
    })
    .await // Here the file is closed.
}

pub(crate) fn run() -> String {
    let log = Log::default();
    let count = block_on(count_matches("bob", log.clone())).unwrap();
    format!("{count} matches, file {:?}", log.0.lock().unwrap())
}
