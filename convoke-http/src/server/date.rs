//! The `date` header in a simulation. Hyper's is by the clock of the machine, which a simulated program must not see: by HTTP/2
//! the header is compressed, and so even the number of bytes would depend on it.
//!
//! On a real machine hyper's stays: it writes a date that it has formatted before, in some fifty instructions. A header of
//! ours costs several hundred by HTTP/1, for an entry in the map.

use core::time::Duration;
use std::time::SystemTime;

use convoke_io::context::time_of_day;
use http::{HeaderValue, Response, header};

/// The difference between two readings of the same clock, at most. A simulation begins in the year 2000.
const SAME_CLOCK: Duration = Duration::from_secs(3600);

/// Returns true if the clock of the task is not that of the machine.
pub(super) fn has_own_clock() -> bool {
    let (ours, machine) = (time_of_day(), SystemTime::now());
    ours.duration_since(machine).unwrap_or_else(|before| before.duration()) > SAME_CLOCK
}

/// Adds the date, unless the service has done so.
#[cold]
pub(super) fn add_date<B>(response: &mut Response<B>) {
    let date = || HeaderValue::try_from(httpdate::fmt_http_date(time_of_day())).ok();
    if !response.headers().contains_key(header::DATE)
        && let Some(date) = date()
    {
        response.headers_mut().insert(header::DATE, date);
    }
}
