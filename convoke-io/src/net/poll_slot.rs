//! What waits for a source on behalf of traits with `poll_…` methods, which have no future of their own to keep it in. Made
//! when it is first needed, and kept.

use core::fmt;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use pin_project_lite::pin_project;

use crate::attempting::Waiting;
use crate::driver::{Interest, Source};

/// Used by who has it to himself; the lock is there so that it may be shared meanwhile, and never taken.
pub(super) struct PollSlot(Mutex<Option<Pin<Box<Kept>>>>);

pin_project! {
    struct Kept {
        source: Arc<dyn Source>,
        #[pin]
        waiting: Waiting,
    }

    impl PinnedDrop for Kept {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            this.waiting.let_go(&**this.source);
        }
    }
}

impl PollSlot {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    #[inline]
    pub(super) fn poll<T>(
        &mut self,
        source: &Arc<dyn Source>,
        interest: Interest,
        place: &'static Location<'static>,
        cx: &Context<'_>,
        act: impl FnMut(&dyn Source) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        let kept = self
            .0
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(|| Box::pin(Kept { source: source.clone(), waiting: Waiting::new() }))
            .as_mut()
            .project();
        kept.waiting.poll(&**kept.source, interest, place, cx, act)
    }
}

impl fmt::Debug for PollSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PollSlot")
    }
}
