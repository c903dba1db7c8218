//! The two halves of an erased stream, for two tasks.

use core::future::Future;
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::{Mutex, MutexGuard};

use super::AnyStream;
use super::methods::{debug, reads, writes};

/// The read half of an [`AnyStream`].
pub struct AnyReader(Arc<Mutex<AnyStream>>);

/// The write half of an [`AnyStream`].
pub struct AnyWriter(Arc<Mutex<AnyStream>>);

impl AnyStream {
    /// Splits it into two halves, for two tasks. A lock is held during a poll, never across an await.
    pub fn split(self) -> (AnyReader, AnyWriter) {
        let both = Arc::new(Mutex::new(self));
        (AnyReader(both.clone()), AnyWriter(both))
    }
}

impl AnyReader {
    /// Reunites both halves.
    ///
    /// # Errors
    /// Returns both unchanged if they are halves of different streams.
    pub fn reunite(self, writer: AnyWriter) -> Result<AnyStream, (Self, AnyWriter)> {
        if !Arc::ptr_eq(&self.0, &writer.0) {
            return Err((self, writer));
        }
        drop(writer);
        match Arc::try_unwrap(self.0) {
            Ok(both) => Ok(both.into_inner().unwrap_or_else(PoisonError::into_inner)),
            Err(_) => unreachable!("the two halves hold the only references"),
        }
    }
}

fn lock(both: &Mutex<AnyStream>) -> MutexGuard<'_, AnyStream> {
    both.lock().unwrap_or_else(PoisonError::into_inner)
}

reads!([] AnyReader, this => lock(&this.0));
writes!([] AnyWriter, this => lock(&this.0));
debug!([] AnyReader, "AnyReader");
debug!([] AnyWriter, "AnyWriter");
