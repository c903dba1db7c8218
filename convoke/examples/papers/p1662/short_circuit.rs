//! P1662R0, *Simulating a `co_return` statement*: a missing value ends the
//! coroutine with no value, an error with that error, in plain functions and in
//! tasks.
//!
//! The paper adds an `operator co_await` per type and a coroutine type for plain
//! functions. Rust has `?`, with the same meaning in both.

use convoke::prelude::*;

fn try_parse(text: &str) -> Option<u32> {
    let mut value = 0;
    for c in text.chars() {
        value = value * 10 + c.to_digit(10)?;
    }
    Some(value)
}

async fn read_string(text: &str) -> String {
    checkpoint().await;
    text.to_owned()
}

fn try_divide(numerator: u32, divisor: u32) -> Result<u32, &'static str> {
    match numerator.checked_rem(divisor).ok_or("divided by zero")? {
        0 => Ok(numerator / divisor),
        _ => Err("not evenly divisible"),
    }
}

async fn divide(numerator: &str, divisor: &str) -> Result<u32, &'static str> {
    let numerator = try_parse(&read_string(numerator).await).ok_or("not a number")?;
    let divisor = try_parse(&read_string(divisor).await).ok_or("not a number")?;
    try_divide(numerator, divisor)
}

pub(crate) fn run() -> String {
    let cases = [("84", "2"), ("84", "0"), ("8x", "2")];
    let results = cases.map(|(n, d)| match block_on(divide(n, d)).unwrap() {
        Ok(result) => result.to_string(),
        Err(error) => error.to_owned(),
    });
    results.join(", ")
}
