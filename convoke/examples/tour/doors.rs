//! Value, error, stopped, panicked: the same sender type, four ends.

use convoke::sender::prelude::*;

/// Reads an order line such as `3x apples`; an empty line means that there are no more orders.
fn read_order(line: &'static str) -> AnySender<u32, String> {
    if line.is_empty() {
        return just_stopped().may_fail().boxed();
    }
    just_from(move || {
        let (count, _) = line.split_once('x').ok_or_else(|| format!("no count in {line:?}"))?;
        let count: u32 = count.parse().map_err(|error| format!("{count:?}: {error}"))?;
        assert!(count < 1000, "{count} of anything is a joke");
        Ok(count)
    })
    .transpose()
    .boxed()
}

pub(crate) fn show() {
    // The last one panics; here it is looked at, not printed by the hook.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    for line in ["3x apples", "apples", "", "5000x apples"] {
        // `materialize` makes every door a value, so that this program can show it.
        let door = match sync_wait(read_order(line).materialize()).unwrap() {
            Outcome::Value(count) => format!("Value     {count}"),
            Outcome::Error(error) => format!("Error     {error}"),
            Outcome::Stopped => "Stopped".to_string(),
            Outcome::Panicked(panic) => format!("Panicked  {}", panic.message()),
        };
        println!("   {line:<14} →  {door}");
    }
    std::panic::set_hook(hook);
}
