//! `IntoFuture` for every sender. The orphan rule forbids a blanket `impl`; so each type is listed once, here
//! or, for senders of other crates, beside them.

use crate::algorithm::{
    affine_on::AffineOn,
    boxed::AnySender,
    bulk::Bulk,
    continues_on::ContinuesOn,
    defer::Defer,
    either::Either,
    finally::Finally,
    fork_join::ForkJoin,
    from_callback::FromCallback,
    just::Just,
    just_error::JustError,
    just_from::JustFrom,
    just_stopped::JustStopped,
    let_error::LetError,
    let_stopped::LetStopped,
    let_value::LetValue,
    let_with::LetWith,
    let_with_stop_source::LetWithStopSource,
    never::NeverSender,
    on::On,
    read_env::ReadEnv,
    repeat_n::RepeatN,
    repeat_until::RepeatUntil,
    retry::Retry,
    schedule::Schedule,
    sequence::Sequence,
    split::{Shareable, Split},
    starts_on::StartsOn,
    stop_when::StopWhen,
    transform::Transformed,
    unstoppable::Unstoppable,
    when_all::WhenAll,
    when_any::WhenAny,
    with_env::WithEnv,
    within::Within,
    write_env::WriteEnv,
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
    [S, X] AffineOn<S, X>,
    [V, E] AnySender<V, E>,
    [S, F] Bulk<S, F>,
    [S, X] ContinuesOn<S, X>,
    [F] Defer<F>,
    [A, B] Either<A, B>,
    [S, C] Finally<S, C>,
    [S, F] ForkJoin<S, F>,
    [F, V, E] FromCallback<F, V, E>,
    [V] Just<V>,
    [V, E] JustError<V, E>,
    [F] JustFrom<F>,
    [V] JustStopped<V>,
    [S, F] LetError<S, F>,
    [S, F] LetStopped<S, F>,
    [S, F] LetValue<S, F>,
    [M, F] LetWith<M, F>,
    [F] LetWithStopSource<F>,
    [V] NeverSender<V>,
    [X, S] On<X, S>,
    [F] ReadEnv<F>,
    [F] RepeatN<F>,
    [F] RepeatUntil<F>,
    [F, A] Retry<F, A>,
    [X] Schedule<X>,
    [T] Sequence<T>,
    [S: Shareable] Split<S>,
    [X, S] StartsOn<X, S>,
    [S, T] StopWhen<S, T>,
    [S, T] Transformed<S, T>,
    [S] Unstoppable<S>,
    [T] WhenAll<T>,
    [T] WhenAny<T>,
    [S, F] WithEnv<S, F>,
    [S, W, X] Within<S, W, X>,
    [S] WriteEnv<S>,
}
