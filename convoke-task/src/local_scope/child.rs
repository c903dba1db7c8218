//! A child of a local scope: its label, and its failure.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use convoke_core::Panic;
use pin_project_lite::pin_project;

use crate::scope::builder::{Naming, Options};
use crate::scope::{ChildOrigin, ChildOutput};

/// Label of a child in messages: its name, or else its spawn site.
pub(super) struct Label {
    pub(super) name: Option<Arc<str>>,
    pub(super) location: &'static Location<'static>,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "`{name}`"),
            None => write!(f, "started at {}", self.location),
        }
    }
}

impl Label {
    pub(super) fn new<N: Naming, X>(options: &Options<N, X>) -> Self {
        let ChildOrigin { name, location } = options.origin();
        Self { name, location }
    }

    /// Adds the label to a panic that is text. A panic with another payload stays as it is.
    #[cold]
    pub(super) fn of_panic(&self, panic: Panic) -> Panic {
        if panic.is_text() {
            Panic::new(format!("the child {self} panicked: {}", panic.message()))
        } else {
            panic
        }
    }
}

pin_project! {
    /// A child without a handle. It completes with the output of the scope, if it has failed.
    pub(super) struct FailingChild<F, O> {
        #[pin]
        future: F,
        _output: PhantomData<fn() -> O>,
    }
}

impl<F, O> FailingChild<F, O> {
    pub(super) fn new(future: F) -> Self {
        Self { future, _output: PhantomData }
    }
}

impl<F: Future<Output: ChildOutput<O>>, O> Future for FailingChild<F, O> {
    type Output = Option<O>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<O>> {
        self.project().future.poll(cx).map(ChildOutput::failure)
    }
}
