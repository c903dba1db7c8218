//! The entrances to local scopes: for children that are `Send`, and for others.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use std::sync::Arc;

use super::child::{Child, Label};
use super::handle::{LocalHandle, with_handle};
use super::inbox::Inbox;
use crate::scope::ChildOutput;

/// A child that is `Send`.
pub(super) type SendChild<'env, O> = dyn Future<Output = Option<O>> + Send + 'env;

/// A child that need not be `Send`.
pub(super) type AnyChild<'env, O> = dyn Future<Output = Option<O>> + 'env;

macro_rules! scopes {
    ($($(#[$doc:meta])* $scope:ident, $named:ident, $child:ident, [$($send:ident)?];)+) => { $(
        $(#[$doc])*
        pub struct $scope<'env, O> {
            inbox: Arc<Inbox<$child<'env, O>>>,
        }

        /// Entrance to a local scope for one child with a name.
        #[must_use = "a name does nothing until a child is started with it"]
        pub struct $named<'a, 'env, O> {
            scope: &'a $scope<'env, O>,
            name: Box<str>,
        }

        impl<'env, O: 'env> $scope<'env, O> {
            pub(super) fn new(inbox: Arc<Inbox<$child<'env, O>>>) -> Self {
                Self { inbox }
            }

            /// Starts a child. The child returns `()`, or a `Result<(), E>` if the scope returns a `Result<_,
            /// E>`. The first error stops the scope.
            ///
            /// # Panics
            /// If the scope has ended.
            #[track_caller]
            pub fn spawn<F>(&self, future: F)
            where
                F: Future<Output: ChildOutput<O>> $(+ $send)? + 'env,
            {
                self.start(future, None, Location::caller());
            }

            /// Starts a child that returns a value, and returns its handle.
            ///
            /// An `Err` of the child goes to the handle, and does not stop the scope. Dropping the handle
            /// asks the child to stop.
            ///
            /// # Panics
            /// If the scope has ended.
            #[track_caller]
            pub fn spawn_future<F>(&self, future: F) -> LocalHandle<F::Output>
            where
                F: Future<Output: 'env $(+ $send)?> $(+ $send)? + 'env,
            {
                self.start_future(future, None, Location::caller())
            }

            /// Gives the next child a name, for panic messages. A child without a name is shown with its
            /// spawn site.
            pub fn named(&self, name: impl Into<Box<str>>) -> $named<'_, 'env, O> {
                $named { scope: self, name: name.into() }
            }

            #[track_caller]
            fn start<F>(&self, future: F, name: Option<Box<str>>, location: &'static Location<'static>)
            where
                F: Future<Output: ChildOutput<O>> $(+ $send)? + 'env,
            {
                self.inbox.push(Box::pin(Child::new(future)), Some(Label { name, location }));
            }

            #[track_caller]
            fn start_future<F>(
                &self,
                future: F,
                name: Option<Box<str>>,
                location: &'static Location<'static>,
            ) -> LocalHandle<F::Output>
            where
                F: Future<Output: 'env $(+ $send)?> $(+ $send)? + 'env,
            {
                let (child, handle) = with_handle(future, Label { name, location });
                self.inbox.push(Box::pin(child), None);
                handle
            }
        }

        impl<'env, O: 'env> $named<'_, 'env, O> {
            /// Starts the child. Its failure stops the scope.
            ///
            /// # Panics
            /// If the scope has ended.
            #[track_caller]
            pub fn spawn<F>(self, future: F)
            where
                F: Future<Output: ChildOutput<O>> $(+ $send)? + 'env,
            {
                self.scope.start(future, Some(self.name), Location::caller());
            }

            /// Starts the child, and returns its handle.
            ///
            /// # Panics
            /// If the scope has ended.
            #[track_caller]
            pub fn spawn_future<F>(self, future: F) -> LocalHandle<F::Output>
            where
                F: Future<Output: 'env $(+ $send)?> $(+ $send)? + 'env,
            {
                self.scope.start_future(future, Some(self.name), Location::caller())
            }
        }

        impl<O> Clone for $scope<'_, O> {
            fn clone(&self) -> Self {
                Self { inbox: self.inbox.clone() }
            }
        }

        impl<O> fmt::Debug for $scope<'_, O> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($scope)).finish_non_exhaustive()
            }
        }

        impl<O> fmt::Debug for $named<'_, '_, O> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($named)).field("name", &self.name).finish_non_exhaustive()
            }
        }
    )+ };
}

scopes! {
    /// Entrance to a [`local_scope()`](super::local_scope): starts children in it. `O` is the output of the
    /// scope; children may borrow what outlives `'env`. A child that has a clone can start siblings.
    LocalScope, LocalNamed, SendChild, [Send];
    /// Entrance to a [`local_scope_not_send()`](super::local_scope_not_send): starts children that need not
    /// be `Send`. Otherwise like [`LocalScope`].
    LocalScopeNotSend, LocalNamedNotSend, AnyChild, [];
}
