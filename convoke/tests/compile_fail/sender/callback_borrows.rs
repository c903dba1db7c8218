//! A stop callback that borrows: it could be leaked and run after what it borrowed is gone.

use convoke_core::StopSource;

fn main() {
    let source = StopSource::new();
    let token = source.token();
    let local = String::new();
    let callback = Box::pin(token.as_ref().on_stop(|_| println!("{local}")));
    callback.as_ref().register();
    std::mem::forget(callback);
}
