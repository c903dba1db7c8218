//! A child of a scope outlives what it borrows there: children that borrow belong to `local_scope`.
use convoke::prelude::*;

fn main() {
    let _ = block_on(async {
        scope(async |s| {
            let text = String::from("mine");
            s.spawn_future(print(&text)).await;
        })
        .await;
        scope(async |s| {
            let text = String::from("mine");
            s.spawn(async { println!("{text}") });
        })
        .await;
    });
}

async fn print(text: &str) {
    println!("{text}");
}
