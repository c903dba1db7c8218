//! Scopes in scopes, and the tree of tasks: where each task was started, and where it waits.

use std::time::Duration;

use convoke::inspect::{Tree, tree};
use convoke::prelude::*;
use convoke::sender::prelude::*;

async fn serve(guest: u64) {
    scope(async |s| {
        s.named("reader").spawn(async { never::<()>().await });
        s.named("writer").spawn(async move { sleep(Duration::from_millis(guest)).await });
        never::<()>().await
    })
    .await
}

/// A server with two guests, which looks at the tree and then asks them to go.
pub(crate) async fn server() -> Tree {
    scope(async |s| {
        let guests: Vec<_> =
            (1..=2).map(|guest| s.named(format!("guest {guest}")).spawn_future(serve(guest))).collect();
        sleep(Duration::from_millis(20)).await;
        let seen = tree();
        drop(guests);
        seen
    })
    .await
}

/// Runs the server. Returns the tree that it has seen: README shows it.
pub(crate) fn tree_of_server() -> Tree {
    sync_wait(task(server()).named("server")).unwrap()
}

pub(crate) fn show() {
    for line in tree_of_server().to_string().lines() {
        println!("   {line}");
    }
    println!("   and when it has ended: {}", tree());
}
