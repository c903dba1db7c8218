//! P3552R2 §4.9: a task fails with an error of its own type, without an exception.
//!
//! `co_yield with_error(e)` is `return Err(e)`, and `co_yield when_error(co_await
//! into_expected(sender))` is `sender.await?`. `try_task` makes `Err` the sender's
//! error, which `when_all` stops the others for.

use std::num::ParseIntError;

use convoke::sender::prelude::*;
use convoke::sender::try_task;

async fn double(text: &'static str) -> Result<u32, ParseIntError> {
    let value = just_from(move || text.parse::<u32>()).transpose().await?;
    Ok(2 * value)
}

pub(crate) fn run() -> String {
    let good = sync_wait(try_task(double("21")));
    let others = never::<()>().may_fail();
    let bad = sync_wait(when_all((try_task(double("x")), others)));
    format!("{}; {}", good.unwrap(), bad.error().unwrap())
}
