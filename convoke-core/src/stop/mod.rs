//! Stop requests: a [`StopSource`] makes one, a [`StopToken`] sees it, a [`StopCallback`] runs when it is
//! made.
//!
//! # Protocol
//! 1. A request has a [`StopReason`]. It is made once; the first reason stays, and nothing takes it back.
//! 2. [`StopSource::request_stop`] may be called on any thread. It runs all registered callbacks on that
//!    thread, newest first, and returns when they have run.
//! 3. A callback runs at most once. Registering it after the request runs it at once. Dropping it removes it,
//!    and waits if it runs on another thread at that moment: afterwards it does not run any more.
//! 4. A child source stops when its parent does, not the other way round. A request goes down the tree of
//!    sources in a loop, so that depth costs no stack.
//! 5. A deadline is an announcement: it says when a stop will be requested at the latest. Sources have no
//!    clock; the code that sets a deadline also makes the request.
//! 6. A stop is a request and not an interruption. Work that honours it ends as
//!    [`Outcome::Stopped`](crate::Outcome::Stopped); work that ignores it ends as usual.
//!
//! # The bridge: how a request gets into a task and out of it
//! Requests travel in two ways:
//! - **Callback list.** A source holds a list of callbacks and calls them on the thread of the request.
//!   Operations, senders, drivers and other code outside of a task register there.
//! - **Stop flag.** A task holds a flag. At each poll the task copies the flag into its outermost poll frame
//!   ([`Frame::is_asked_to_stop`](crate::raw::Frame::is_asked_to_stop)). The owners of inner frames pass it
//!   on, or set it themselves; a shield does not pass it on. Futures read it when they are polled. It costs
//!   no registration and no lock, however deep the `async fn`s are nested. A scope sets the flags of its
//!   child tasks directly. The thread that sets the flag of a task goes on to the scopes that are open in
//!   it, and to their children, at once: no task has to be polled for its children to hear of a stop.
//!
//! The *stop bridge* connects the two. A request crosses it at these points:
//! 1. **From the list to the flag, at the root of a task tree.** A task that is launched, or awaited as an
//!    operation, registers one callback with the source of its environment. The callback sets the flag and
//!    wakes the task; the next poll honours it.
//! 2. **From the flag to the list, at an awaited operation.** An operation that a future awaits has a source
//!    of its own, an [`InPlaceStop`] beside it. The future that is polled with the
//!    flag set requests a stop there ([`Adopted`](crate::raw::Adopted)). If the future is dropped, it
//!    requests a stop too, with [`StopReason::Abandoned`]. Futures that wait for other threads, such as that
//!    of a blocking call, do the same with a [`StopSource`].
//! 3. **From the flag to the list, at the environment of a frame.** Code inside of a task that asks for a
//!    stop token gets that of a source which belongs to the owner of the frame
//!    ([`FrameOwner::env`](crate::raw::FrameOwner::env)). The source is created when it is first asked for.
//!    The owner requests a stop there before it polls with the flag set.
//! 4. **From the list back to a poll, at a foreign waker.** A foreign combinator polls its children only when
//!    their own wakers are called, and so would not read the flag. A future that waits with such a waker
//!    registers it as a callback with the token of point 3 ([`StopWatch`](crate::raw::StopWatch)).

// The map: `state.rs` is the machine, the flag and the callback list behind every source; `lock.rs` is its
// lock. `source.rs`, `token.rs` and `callback.rs` are its three handles. `in_place.rs` is a source inside of
// an operation, without an allocation. `reason.rs` is the reason, and `reason_code.rs` a reason as a number.
// The bridge is in `frame/` (points 3 and 4), in `adopted/` (point 2) and, for point 1, in the task types of
// the crates above.

mod callback;
mod in_place;
mod lock;
mod reason;
mod reason_code;
mod source;
mod state;
mod token;

pub use callback::{OnStop, OwnedStopCallback, RawCallback, StopCallback};
pub use in_place::InPlaceStop;
pub use reason::StopReason;
pub use reason_code::ReasonCode;
pub use source::StopSource;
pub use state::Onward;
pub use token::{StopRef, StopToken};
