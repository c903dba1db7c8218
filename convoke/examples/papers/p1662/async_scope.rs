//! P1662R0, *Waiting for concurrent operations to finish*: ten tasks use a local
//! resource, and have ended before it goes, also if one of them fails.
//!
//! The paper's first version has a bug, its second is cumbersome, its third needs a
//! language feature. `local_scope` is the third: the borrow of `shared` is checked
//! by the compiler.

use std::cell::RefCell;

use convoke::prelude::*;
use convoke::scope::local_scope_not_send;

async fn do_something(resource: &RefCell<Vec<u32>>, i: u32) -> Result<(), String> {
    checkpoint().await;
    if i == 7 {
        return Err(format!("{i} failed"));
    }
    resource.borrow_mut().push(i);
    Ok(())
}

pub(crate) fn run() -> String {
    let outcome = block_on(async {
        let shared = RefCell::new(Vec::new());
        let result = local_scope_not_send(async |s| {
            for i in 0..10 {
                s.spawn(do_something(&shared, i));
            }
            Ok(())
        });
        let result = result.await;
        format!("{result:?} after {:?}", shared.into_inner())
    });
    outcome.unwrap()
}
