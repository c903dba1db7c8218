//! The names that a program that uses senders imports.

pub use crate::algorithm::{
    boxed::AnySender,
    defer::defer,
    either::Either,
    from_callback::{Completion, from_callback},
    just::{Just, just},
    just_error::{JustError, just_error},
    just_from::{JustFrom, just_from},
    just_stopped::{JustStopped, just_stopped},
    let_with::let_with,
    let_with_stop_source::let_with_stop_source,
    never::never,
    read_env::read_env,
    repeat_n::repeat_n,
    repeat_until::repeat_until,
    retry_sender::retry_sender,
    schedule::{Scheduler, schedule},
    sequence::sequence,
    starts_on::starts_on,
    when_all::when_all,
    when_any::when_any,
    within::within,
};
pub use crate::{AwaitableSender, Sender};
pub use convoke_core::{
    Env, Executor, ExecutorRef, Never, Outcome, Panic, StopReason, StopSource, StopToken,
};
