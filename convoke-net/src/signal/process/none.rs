//! Systems without signals: every call fails.

use std::io;

pub(super) struct SystemSignals;

impl SystemSignals {
    pub(super) fn new(_deliver: impl Fn(i32) + Send + 'static) -> io::Result<Self> {
        Err(no_signals())
    }

    pub(super) fn can_handle(_number: i32) -> bool {
        false
    }

    pub(super) fn listen_for(&self, _number: i32) -> io::Result<()> {
        Err(no_signals())
    }
}

pub(super) fn raise(_number: i32) -> io::Result<()> {
    Err(no_signals())
}

fn no_signals() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this system has no signals")
}
