//! `IntoFuture` for every sender. The orphan rule forbids a blanket `impl`; so each type is listed once, here
//! or, for senders of other crates, beside them.

use crate::algorithm::{
    boxed::AnySender,
    continuation::Sequenced,
    either::Either,
    from_callback::FromCallback,
    hop::Hopped,
    just::Just,
    just_error::JustError,
    just_from::JustFrom,
    just_stopped::JustStopped,
    never::NeverSender,
    read_env::ReadEnv,
    rounds::InRounds,
    schedule::Schedule,
    scoped::InScope,
    split::{Shareable, Split},
    stop_when::StopWhen,
    transform::Transformed,
    when_all::WhenAll,
    when_any::WhenAny,
};

/// Makes senders awaitable: `awaitable!([S, F] MySender<S, F>);` implements `IntoFuture` for `MySender<S, F>`
/// wherever that is a `'static` sender whose outcome is `Send`.
#[macro_export]
macro_rules! awaitable {
    ($([$($generic:ident $(: $bound:path)?),*] $sender:ty),+ $(,)?) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($generic $(: $bound)?),*> ::core::future::IntoFuture for $sender
        where
            Self: $crate::Sender<Value: Send, Error: $crate::AwaitError + Send> + 'static,
        {
            type Output = <<Self as $crate::Sender>::Error as $crate::AwaitError>::Output<
                <Self as $crate::Sender>::Value,
            >;
            type IntoFuture = $crate::Awaited<Self>;

            #[inline]
            #[track_caller]
            fn into_future(self) -> $crate::Awaited<Self> {
                $crate::Awaited::new(self)
            }
        }
    )+};
}

awaitable! {
    [V, E] AnySender<V, E>,
    [A, B] Either<A, B>,
    [F, V, E] FromCallback<F, V, E>,
    [S, D] Hopped<S, D>,
    [L] InRounds<L>,
    [C] InScope<C>,
    [V] Just<V>,
    [V, E] JustError<V, E>,
    [F] JustFrom<F>,
    [V] JustStopped<V>,
    [V] NeverSender<V>,
    [F] ReadEnv<F>,
    [X] Schedule<X>,
    [S, C] Sequenced<S, C>,
    [S: Shareable] Split<S>,
    [S, T] StopWhen<S, T>,
    [S, T] Transformed<S, T>,
    [T] WhenAll<T>,
    [T] WhenAny<T>,
}
