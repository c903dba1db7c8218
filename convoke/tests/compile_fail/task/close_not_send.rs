// A close that must not leave its thread.

use std::rc::Rc;

use convoke::Never;
use convoke::prelude::*;

struct Local;

impl AsyncClose for Local {
    type Error = Never;

    async fn close(self, _: Exit) -> Result<(), Never> {
        let kept = Rc::new(());
        checkpoint().await;
        drop(kept);
        Ok(())
    }
}

fn main() {}
