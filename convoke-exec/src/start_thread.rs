//! The one place where Convoke starts a thread, so that the code for it is in a program once.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread with this name, and with this stack size or else the default.
///
/// # Errors
/// If the system cannot start a thread.
pub fn start_thread(
    name: String,
    stack_size: Option<usize>,
    body: Box<dyn FnOnce() + Send>,
) -> io::Result<JoinHandle<()>> {
    let mut builder = Builder::new().name(name);
    if let Some(bytes) = stack_size {
        builder = builder.stack_size(bytes);
    }
    builder.spawn(body)
}
