use convoke::prelude::*;
use convoke::sender::prelude::*;

fn main() {
    let pool = ThreadPool::new(1).unwrap();
    let executor = pool.executor();
    let _ = sync_wait(task(async move {
        let text = String::from("borrowed");
        schedule(&executor).then(|()| text.len()).await
    }));
}
