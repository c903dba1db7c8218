//! Starting a child: the one way into a scope, under all verbs that spawn.

use core::future::Future;
use core::panic::Location;

use super::child::{Attach, Attached, BehindChildHandle, ToHandle};
use super::handle::Handle;
use super::spawn::{Scope, SpawnError};
use crate::task::{Ending, HandleKind, Spawnable};

/// The reason why a child was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Ended,
    NoMemory,
    WrongThread,
}

impl<O> Scope<O> {
    /// Starts a child: step 1 of the protocol in `mod.rs`.
    #[inline]
    pub(super) fn start<F, M>(
        &self,
        future: Spawnable<F>,
        ending: M,
        location: &'static Location<'static>,
    ) -> Result<(), SpawnError<F>>
    where
        F: Future,
        M: Ending<F::Output> + Attached<O>,
    {
        // Not `?`: it would be compiled for each future.
        match self.block.add(future, ending, location) {
            Ok(child) => {
                child.into_task().post();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Starts a child with a handle of kind `K`, which is `SameThread` only for a local future.
    #[inline]
    pub(super) fn start_with_handle<F: Future, W: Attach<O>, K: HandleKind>(
        &self,
        future: Spawnable<F>,
        attachment: W,
        location: &'static Location<'static>,
    ) -> Result<Handle<F::Output, K>, SpawnError<F>> {
        let ending = ToHandle::<O, W, K>::new(location, BehindChildHandle::new(attachment));
        match self.block.add(future, ending, location) {
            Ok(child) => Ok(Handle::new(child.post_with_handle())),
            Err(error) => Err(error),
        }
    }

    /// Starts a child with a handle, and polls it at once where its executor is the run loop of this thread.
    #[inline]
    pub(super) fn start_eagerly<F: Future, W: Attach<O>>(
        &self,
        future: Spawnable<F>,
        attachment: W,
        location: &'static Location<'static>,
    ) -> Result<Handle<F::Output>, SpawnError<F>> {
        let ending = ToHandle::new(location, BehindChildHandle::new(attachment));
        match self.block.add(future, ending, location) {
            Ok(child) => Ok(Handle::new(child.run_with_handle())),
            Err(error) => Err(error),
        }
    }
}
