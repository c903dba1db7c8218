use convoke::prelude::*;
use convoke::sender::prelude::*;

fn main() {
    let _ = sync_wait(task(async {
        scope(async |s| {
            s.spawn(async { 5 });
        })
        .await
    }));
}
