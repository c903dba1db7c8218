// The close may fail, and the body returns a type of its own that cannot hold the error.

use convoke::prelude::*;
use convoke::task::task;

struct File;

impl AsyncClose for File {
    type Error = std::io::Error;

    async fn close(self, _: Exit) -> Result<(), std::io::Error> {
        Ok(())
    }
}

struct Count(u32);

impl convoke::scope::BodyOutput for Count {}

fn main() {
    let _ = task(async { using(File, async |_| Count(7)).await });
}
