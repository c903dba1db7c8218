//! The environment: a value set by a caller is read far below, through code that does not pass it on.

use convoke::env::{Changes, Local};
use convoke::sender::prelude::*;

static REQUEST: Local<u64> = Local::inherited("request id");
static TENANT: Local<&str> = Local::inherited("tenant");

/// Deep inside: no context argument came down to here.
fn log_line(what: &'static str) -> impl Sender<Value = String, Error = Never> {
    read_env(move |env| {
        let request = env.local(&REQUEST).copied().unwrap_or(0);
        let tenant = env.local(&TENANT).copied().unwrap_or("-");
        format!("request={request} tenant={tenant} {what}")
    })
}

fn library_code() -> impl Sender<Value = (String, String), Error = Never> {
    when_all((log_line("begin"), log_line("charge").write_env(Changes::new().local(&TENANT, "billing"))))
}

pub(crate) fn show() {
    let request = library_code().write_env(Changes::new().local(&REQUEST, 4711).local(&TENANT, "acme"));
    let (first, second) = sync_wait(request).unwrap();
    println!("   {first}\n   {second}");
}
