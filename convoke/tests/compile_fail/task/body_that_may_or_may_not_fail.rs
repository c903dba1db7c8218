// A body returns a type of which it is not known if it can be a failure.

use convoke::prelude::*;
use convoke::task::task;

struct Summary;

async fn nothing_known<T>(value: T) -> T {
    scope(async |_| value).await
}

fn main() {
    let _ = task(async { scope(async |_| Summary).await });
    let _ = task(async { nothing_known(1).await });
}
