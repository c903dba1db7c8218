//! A stop callback that is dropped after its token: it would take itself out of a list that is gone.

use convoke_core::{StopCallback, StopSource};

fn main() {
    let callback;
    let token = StopSource::new().token();
    callback = Box::pin(StopCallback::new(token.as_ref(), |_| ()));
    callback.as_ref().register();
}
