use std::rc::Rc;

use convoke::prelude::*;
use convoke::sender::prelude::*;

fn main() {
    let _ = sync_wait(task(async {
        scope(async |s| {
            let shared = Rc::new(1);
            s.spawn(async move {
                checkpoint().await;
                drop(shared);
            });
        })
        .await
    }));
}
