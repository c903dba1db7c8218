//! The entrances to local scopes: for children that are `Send`, and for others.

use core::fmt;
use core::future::Future;
use std::sync::Arc;

use convoke_core::raw::{FrameArc, FrameBox};

use super::child::{FailingChild, Label};
use super::handle::{LocalHandle, with_handle};
use super::inbox::Inbox;
use crate::scope::builder::{
    ChildWork, Inherited, LocalParent, Name, Naming, OnLocalThread, Options, Parent, Takes, TakesLocal,
    Unnamed,
};
use crate::scope::{Child, ChildOutput};

/// A child that is `Send`.
pub(super) type SendChild<'env, O> = dyn Future<Output = Option<O>> + Send + 'env;

/// A child that need not be `Send`.
pub(super) type AnyChild<'env, O> = dyn Future<Output = Option<O>> + 'env;

macro_rules! scopes {
    ($(
        $(#[$doc:meta])*
        $scope:ident, $child:ident, [$($send:ident)?], $place:ident, $new:ident,
        ($parent:ident $(<$anywhere:ident>)?, $start_future:ident), ($takes:ident, $start:ident), $erase:ident;
    )+) => { $(
        $(#[$doc])*
        pub struct $scope<'env, O> {
            inbox: FrameArc<Inbox<$child<'env, O>>>,
        }

        impl<'env, O: 'env> $scope<'env, O> {
            pub(super) fn new(inbox: FrameArc<Inbox<$child<'env, O>>>) -> Self {
                Self { inbox }
            }

            /// Starts a child. The child returns `()`, or a `Result<(), E>` if the scope returns a `Result<_,
            /// E>`. The first error stops the scope.
            ///
            /// Use `spawn_future` for a child whose value you need, and `child` for one with options.
            ///
            /// # Panics
            /// If the scope has ended.
            #[track_caller]
            pub fn spawn<F>(&self, future: F)
            where
                F: Future<Output: ChildOutput<O>> $(+ $send)? + 'env,
            {
                self.child().spawn(future);
            }

            /// Starts a child that returns a value, and returns its handle.
            ///
            /// An `Err` of the child goes to the handle, and does not stop the scope. Dropping the handle
            /// asks the child to stop, and so does `let _ = s.spawn_future(..)`.
            ///
            /// # Panics
            /// If the scope has ended.
            #[track_caller]
            pub fn spawn_future<F>(&self, future: F) -> LocalHandle<F::Output>
            where
                F: Future<Output: 'env $(+ $send)?> $(+ $send)? + 'env,
            {
                self.child().spawn_future(future)
            }

            /// Returns a builder for one child with a name, for panic messages. A child without a name is
            /// shown with its spawn site.
            pub fn named(&self, name: impl Into<Arc<str>>) -> Child<&Self, Name, $place> {
                self.child().name(name)
            }

            /// Returns a builder for one child with options: a name, a permit, restarts.
            pub fn child(&self) -> Child<&Self, Unnamed, $place> {
                Child::$new(self)
            }
        }

        impl<'env, O: 'env> $parent<'env $(, $anywhere)?> for &$scope<'env, O> {
            type Handle<T>
                = LocalHandle<T>
            where
                T: 'env;

            #[track_caller]
            fn $start_future<N, F>(self, options: Options<N, $place>, future: F) -> LocalHandle<F::Output>
            where
                N: Naming,
                F: Future<Output: 'env $(+ $send)?> $(+ $send)? + 'env,
            {
                let (child, handle) = with_handle(future, Label::new(&options));
                self.inbox.push(FrameBox::into_pin(FrameBox::in_task(child).$erase()), None);
                handle
            }
        }

        impl<'env, O: 'env, T: ChildOutput<O>> $takes<'env, $($anywhere,)? T> for &$scope<'env, O> {
            #[track_caller]
            fn $start<N, R, W>(self, options: Options<N, $place>, future: R::Future)
            where
                N: Naming,
                R: ChildWork<W, Future: Future<Output = T> $(+ $send)? + 'env>,
            {
                let child = FrameBox::in_task(FailingChild::new(future));
                self.inbox.push(FrameBox::into_pin(child.$erase()), Some(Label::new(&options)));
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
    )+ };
}

scopes! {
    /// Entrance to a [`local_scope()`](super::local_scope): starts children in it. `O` is the output of the
    /// scope; children may borrow what outlives `'env`. A child that has a clone can start siblings.
    LocalScope, SendChild, [Send], Inherited, new,
    (Parent<Inherited>, start_child_future), (Takes, start_child), into_dyn_future;
    /// Entrance to a [`local_scope_not_send()`](super::local_scope_not_send): starts children that need not
    /// be `Send`. Otherwise like [`LocalScope`].
    LocalScopeNotSend, AnyChild, [], OnLocalThread, new_local,
    (LocalParent, start_local_future), (TakesLocal, start_local_child), into_dyn_local_future;
}
