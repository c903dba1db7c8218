//! P1662R0, *Asynchronous generators*: records of a database, page by page, and a
//! connection that is disconnected when the consumer has found what it looks for.
//!
//! The paper writes this three times: wrong, with status codes and `goto`, and with
//! a language feature. This is the third.

use std::sync::{Arc, Mutex};

use convoke::prelude::*;
use convoke::task::{Generator, generator};

type Log = Arc<Mutex<Vec<String>>>;

struct Record {
    name: &'static str,
    email: &'static str,
}

struct Connection(Log);

impl Connection {
    async fn page(&self, number: usize) -> Vec<Record> {
        checkpoint().await;
        self.0.lock().unwrap().push(format!("page {number}"));
        let names = ["alice", "bob", "carol", "dave"].into_iter();
        let page = names.skip(2 * number).take(2);
        page.map(|name| Record { name, email: "bob@example.org" }).collect()
    }
}

impl AsyncClose for Connection {
    type Error = Never;

    async fn close(self, exit: Exit) -> Result<(), Never> {
        checkpoint().await; // A goodbye to the server.
        self.0.lock().unwrap().push(format!("disconnected: the body {exit}"));
        Ok(())
    }
}

fn get_records(log: Log) -> Generator<Record, impl Future<Output = ()>> {
    generator(async move |y| {
        using(Connection(log), async |connection| {
            for number in 0.. {
                let page = connection.page(number).await;
                if page.is_empty() {
                    break;
                }
                for record in page {
                    y.yield_value(record).await;
                }
            }
        })
        .await;
    })
}

async fn find_bobs_email(log: Log) -> Option<&'static str> {
    using(get_records(log), async |mut records| {
        while let Some(record) = records.next().await {
            if record.name == "bob" {
                return Some(record.email);
            }
        }
        None
    })
    .await
}

pub(crate) fn run() -> String {
    let log = Log::default();
    let email = block_on(find_bobs_email(log.clone())).unwrap().unwrap();
    format!("{email}; {}", log.lock().unwrap().join(", "))
}
