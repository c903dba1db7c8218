//! Starting children in a local scope: of such that may be sent to another thread with their task, and of others.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use std::sync::Arc;

use super::child::{Child, Label};
use super::handle::{LocalHandle, with_handle};
use super::inbox::Inbox;
use crate::scope::ChildOutput;

/// Children that are `Send`, as the box of one is.
pub(super) type SendChild<'env, O> = dyn Future<Output = Option<O>> + Send + 'env;

/// Children that need not be.
pub(super) type AnyChild<'env, O> = dyn Future<Output = Option<O>> + 'env;

macro_rules! scopes {
    ($($(#[$doc:meta])* $scope:ident, $named:ident, $child:ident, [$($send:ident)?];)+) => { $(
        $(#[$doc])*
        pub struct $scope<'env, O> {
            inbox: Arc<Inbox<$child<'env, O>>>,
        }

        /// Starts children with a name.
        #[must_use = "a name does nothing until a child is started with it"]
        pub struct $named<'a, 'env, O> {
            scope: &'a $scope<'env, O>,
            name: Box<str>,
        }

        impl<'env, O: 'env> $scope<'env, O> {
            pub(super) fn new(inbox: Arc<Inbox<$child<'env, O>>>) -> Self {
                Self { inbox }
            }

            /// Starts a child. It returns `()`, or a `Result<(), E>` where the scope returns a `Result<_, E>`; the first error
            /// stops the scope.
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

            /// Starts a child that returns something, and returns its handle.
            ///
            /// An `Err` that it returns is the handle's: the scope is not stopped by it. Dropping the handle asks the child
            /// to stop.
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

            /// Gives the next child a name, for panics. Without one it is known by where it was started.
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
            /// As without a name.
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

            /// As without a name.
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
    /// Starts children in a [`local_scope()`](super::local_scope). `O` is what the scope returns, `'env` what children may
    /// borrow. It may be cloned, and given to children, who then start others beside them.
    LocalScope, LocalNamed, SendChild, [Send];
    /// Starts children in a [`local_scope_not_send()`](super::local_scope_not_send): as [`LocalScope`], but they need not be
    /// `Send`.
    LocalScopeNotSend, LocalNamedNotSend, AnyChild, [];
}
