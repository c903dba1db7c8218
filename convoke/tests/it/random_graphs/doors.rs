//! The outcomes that a graph may have.

use std::sync::Arc;

use crate::random_graphs::plan::Kind::*;
use crate::random_graphs::plan::Plan;

pub(crate) const VALUE: u8 = 1;
pub(crate) const ERROR: u8 = 2;
pub(crate) const STOPPED: u8 = 4;
pub(crate) const PANICKED: u8 = 8;

impl Plan {
    /// Returns the possible outcomes, given that a stop may be requested around it or not. It may return too
    /// many, never too few.
    pub(crate) fn doors(&self, may_stop: bool) -> u8 {
        let child = |i: usize| self.children[i].doors(may_stop);
        let by_stop = if may_stop { STOPPED } else { 0 };
        let to = |doors: u8, from: u8, into: u8| if doors & from == 0 { doors } else { doors & !from | into };
        let or_boom = |door: u8| if self.boom { PANICKED } else { door };
        match self.kind {
            Just => VALUE,
            JustError => ERROR,
            JustStopped | Never | UntilStopped => STOPPED,
            CallbackDropped => or_boom(STOPPED),
            JustFrom => or_boom(VALUE),
            Schedule => or_boom(VALUE) | by_stop,
            Callback => or_boom([VALUE, ERROR, STOPPED, VALUE][self.n % 4]),
            Look => VALUE | by_stop,
            Then => to(child(0), VALUE, or_boom(VALUE)),
            MapError => to(child(0), ERROR, or_boom(ERROR)),
            UponError => to(child(0), ERROR, or_boom(VALUE)),
            UponStopped | StoppedAsOption => to(child(0), STOPPED, or_boom(VALUE)),
            StoppedAsError => to(child(0), STOPPED, ERROR),
            IntoResult | Materialize | Either | ContinuesOn | AffineOn => child(0),
            StartsOn | On | Split => child(0) | by_stop,
            Finally => or_boom(child(0)),
            Unstoppable => self.children[0].doors(false),
            WriteEnv => self.children[0].doors(may_stop && !self.has_own_stop()),
            Defer | LetWith => or_boom(child(0)),
            RepeatN | RepeatUntil if self.n.is_multiple_of(4) => VALUE | by_stop,
            RepeatN | RepeatUntil => to(child(0), VALUE, or_boom(VALUE)) | by_stop,
            Retry => to(child(0), ERROR, or_boom(ERROR)) | by_stop,
            LetWithStopSource => self.children[0].doors(true) | STOPPED,
            Bulk => to(child(0), VALUE, or_boom(VALUE) | by_stop),
            LetValue | Sequence => to(child(0), VALUE, or_boom(child(1))),
            LetError => to(child(0), ERROR, or_boom(child(1))),
            LetStopped => to(child(0), STOPPED, or_boom(child(1))),
            StopWhen => self.children[0].doors(true) | self.children[1].doors(true) & PANICKED,
            Within => to(child(0), VALUE, or_boom(child(1))),
            ForkJoin => to(child(0), VALUE, or_boom(all(&self.children[1..], may_stop))),
            WhenAll => all(&self.children, may_stop),
            WhenAny => any(&self.children, may_stop),
        }
    }
}

fn all(children: &[Arc<Plan>], may_stop: bool) -> u8 {
    let alone = children.iter().map(|child| child.doors(may_stop));
    let (either, both) = alone.fold((0, VALUE), |(either, both), doors| (either | doors, both & doors));
    if either & !VALUE == 0 {
        return both;
    }
    // The first failure stops the others, which may then fail in other ways.
    let stopped = children.iter().fold(0, |doors, child| doors | child.doors(true));
    both | stopped & !VALUE
}

fn any(children: &[Arc<Plan>], may_stop: bool) -> u8 {
    let alone: Vec<u8> = children.iter().map(|child| child.doors(may_stop)).collect();
    // A value or a panic stops the others, which may then panic, too.
    let stopped = children.iter().fold(0, |doors, child| doors | child.doors(true));
    let mut doors = stopped & (VALUE | PANICKED);
    if alone.iter().all(|doors| doors & (ERROR | STOPPED) != 0) {
        doors |= alone.iter().fold(0, |all, doors| all | doors & ERROR);
    }
    if alone.iter().all(|doors| doors & STOPPED != 0) {
        doors |= STOPPED;
    }
    doors
}
