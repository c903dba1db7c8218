//! P4003R1 §6.1 and §6.3: a library of handlers that is compiled once, and whose
//! callers see neither executor nor allocator nor the types inside.
//!
//! Each `async fn` has a type of its own, as large as its frame. `frame_dyn` erases
//! it, into memory of the chain: the paper's `task<T>`, with one parameter.

use convoke::alloc::{Framed, frame_dyn};
use convoke::prelude::*;

type Work<T> = Framed<dyn Future<Output = T> + Send>;
type Handler = fn(&'static str) -> Work<String>;

/// Exports of a library: functions without type parameters, in a table.
const HANDLERS: [(&str, Handler); 2] = [("/echo", echo), ("/length", length)];

fn echo(body: &'static str) -> Work<String> {
    frame_dyn(async move { body.to_owned() })
}

fn length(body: &'static str) -> Work<String> {
    frame_dyn(async move {
        checkpoint().await;
        body.len().to_string()
    })
}

pub(crate) fn run() -> String {
    let outcome = block_on(async {
        let mut answers = Vec::new();
        for (path, handler) in HANDLERS {
            answers.push(format!("{path}: {}", handler("hello").await));
        }
        answers.join(", ")
    });
    outcome.unwrap()
}
