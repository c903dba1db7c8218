//! Asking work to stop. A [`StopSource`] makes the request, a [`StopToken`] sees it, a [`StopCallback`] is told.
//! A request has a reason, is made once and is never taken back; a source may have a deadline that says when it
//! will be made at the latest.

mod callback;
mod in_place;
mod lock;
mod reason;
mod source;
mod state;
mod token;

pub use callback::{OnStop, OwnedStopCallback, RawCallback, StopCallback};
pub use in_place::InPlaceStop;
pub use reason::StopReason;
pub use source::StopSource;
pub use state::Onward;
pub use token::{StopRef, StopToken};
