//! P3552R2 §4.7: a value of the program's own in the environment of a task.
//!
//! The paper writes a query, and a context class that forwards it. Here a key is a
//! `static`, and everything below inherits its value.

use convoke::env::{Changes, Local, current};
use convoke::sender::prelude::*;

static VALUE: Local<u32> = Local::inherited("value");

async fn show() -> String {
    let value = current::local(&VALUE).unwrap_or_default();
    format!("value={value}")
}

pub(crate) fn run() -> String {
    let work = task(show()).write_env(Changes::new().local(&VALUE, 42));
    sync_wait(work).unwrap()
}
