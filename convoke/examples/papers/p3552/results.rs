//! P3552R2 §4.4: what `co_await` returns for each way in which a sender completes.
//!
//! A sender has one type of value, so that several values are a tuple. An error is
//! a `Result` and not an exception; a sender that cannot fail yields the plain
//! value.

use convoke::prelude::*;
use convoke::sender::prelude::*;

async fn fun() {
    let () = just(()).await;
    let v: i32 = just(0).await;
    let (i, b, c): (i32, bool, char) = just((v, true, 'c')).await;
    let failed: Result<(), i32> = just_error(i).await;
    assert_eq!((b, c, failed), (true, 'c', Err(0)));
    just_stopped().await // Ends the task as stopped: it is not resumed.
}

pub(crate) fn run() -> String {
    format!("{:?}", block_on(fun()))
}
