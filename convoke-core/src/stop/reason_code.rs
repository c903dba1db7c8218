//! A stop reason as a number: for words that have no room for a [`StopReason`].

use core::num::NonZero;
use std::sync::Mutex;

use super::StopReason;

/// A stop reason as a number of four bytes, which is never zero.
///
/// Common reasons have fixed numbers. All others, such as names, get one when they are first used, and keep it:
/// a program has few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReasonCode(NonZero<u32>);

/// Reasons without a fixed number. The number of each is its index, plus `FIRST_OTHER`.
static OTHERS: Mutex<Vec<StopReason>> = Mutex::new(Vec::new());

const REQUESTED: u32 = 1;
const DEADLINE: u32 = 2;
const SIBLING: u32 = 3;
const LOST: u32 = 4;
const ABANDONED: u32 = 5;
const SHUTDOWN: u32 = 6;
/// Signals come from here on, up to `FIRST_OTHER`.
const FIRST_SIGNAL: u32 = 1 << 16;
const FIRST_OTHER: u32 = 1 << 17;

impl ReasonCode {
    /// Returns the number of a reason.
    #[inline]
    pub fn of(reason: StopReason) -> Self {
        let code = match reason {
            StopReason::Requested => REQUESTED,
            StopReason::Deadline => DEADLINE,
            StopReason::Sibling => SIBLING,
            StopReason::Lost => LOST,
            StopReason::Abandoned => ABANDONED,
            StopReason::Shutdown => SHUTDOWN,
            StopReason::Signal(number @ 0..=0xFFFF) => FIRST_SIGNAL + number.unsigned_abs(),
            other @ (StopReason::Signal(_) | StopReason::Named(_)) => Self::of_other(other),
        };
        Self(NonZero::new(code).expect("no reason has the number zero"))
    }

    /// Returns the number of a reason that has no fixed one. If there were more reasons than numbers, those
    /// beyond would be plain requests.
    #[cold]
    fn of_other(reason: StopReason) -> u32 {
        let mut others = OTHERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let index = others.iter().position(|other| *other == reason).unwrap_or_else(|| {
            others.push(reason);
            others.len() - 1
        });
        u32::try_from(index).ok().and_then(|index| FIRST_OTHER.checked_add(index)).unwrap_or(REQUESTED)
    }

    /// Returns the reason that has this number.
    pub fn reason(self) -> StopReason {
        match self.0.get() {
            DEADLINE => StopReason::Deadline,
            SIBLING => StopReason::Sibling,
            LOST => StopReason::Lost,
            ABANDONED => StopReason::Abandoned,
            SHUTDOWN => StopReason::Shutdown,
            signal @ FIRST_SIGNAL..FIRST_OTHER => StopReason::Signal((signal - FIRST_SIGNAL).cast_signed()),
            other @ FIRST_OTHER.. => {
                let others = OTHERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                others.get((other - FIRST_OTHER) as usize).copied().unwrap_or(StopReason::Requested)
            }
            _ => StopReason::Requested,
        }
    }

    /// Returns the number.
    #[inline]
    pub fn number(self) -> u32 {
        self.0.get()
    }

    /// Returns the code with this number, which [`number`](ReasonCode::number) has returned, or `None` for
    /// zero.
    #[inline]
    pub fn from_number(number: u32) -> Option<Self> {
        NonZero::new(number).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_number_of_its_own_and_comes_back_from_it() {
        let reasons = [
            StopReason::Requested,
            StopReason::Deadline,
            StopReason::Sibling,
            StopReason::Lost,
            StopReason::Abandoned,
            StopReason::Shutdown,
            StopReason::Signal(0),
            StopReason::Signal(15),
            StopReason::Signal(0xFFFF),
            StopReason::Signal(0x1_0000),
            StopReason::Signal(-1),
            StopReason::Named("reload"),
            StopReason::Named("drain"),
        ];
        let codes = reasons.map(ReasonCode::of);
        assert_eq!(codes.map(ReasonCode::reason), reasons);
        assert_eq!(codes.map(|code| ReasonCode::from_number(code.number())), codes.map(Some));
        assert_eq!(reasons.map(ReasonCode::of), codes, "a reason keeps its number");
        for (index, code) in codes.iter().enumerate() {
            assert!(!codes[..index].contains(code), "{:?} shares its number", reasons[index]);
        }
    }
}
