//! The shape of a graph, made from a seed, and the doors through which it may end.

use std::fmt;
use std::sync::Arc;

pub(crate) const VALUE: u8 = 1;
pub(crate) const ERROR: u8 = 2;
pub(crate) const STOPPED: u8 = 4;
pub(crate) const PANICKED: u8 = 8;

/// Small and repeatable.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        // Neighbouring seeds are spread, and the state is never zero.
        Self((seed.wrapping_add(1)).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % limit
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Just,
    JustError,
    JustStopped,
    JustFrom,
    Schedule,
    Callback,
    CallbackDropped,
    Look,
    Never,
    UntilStopped,
    Then,
    MapError,
    UponError,
    UponStopped,
    StoppedAsOption,
    StoppedAsError,
    IntoResult,
    Materialize,
    Either,
    StartsOn,
    ContinuesOn,
    On,
    AffineOn,
    Finally,
    Unstoppable,
    WriteEnv,
    Defer,
    RepeatN,
    RepeatUntil,
    Retry,
    Split,
    LetWith,
    LetWithStopSource,
    Bulk,
    LetValue,
    LetError,
    LetStopped,
    Sequence,
    StopWhen,
    Within,
    ForkJoin,
    WhenAll,
    WhenAny,
}

use Kind::*;

const LEAVES: &[Kind] =
    &[Just, JustError, JustStopped, JustFrom, Schedule, Schedule, Callback, Callback, CallbackDropped, Look];

const ENDLESS: &[Kind] = &[Never, Never, UntilStopped];

const NODES: &[Kind] = &[
    Then,
    MapError,
    UponError,
    UponStopped,
    StoppedAsOption,
    StoppedAsError,
    IntoResult,
    Materialize,
    Either,
    StartsOn,
    ContinuesOn,
    On,
    AffineOn,
    Finally,
    Finally,
    Unstoppable,
    WriteEnv,
    Defer,
    RepeatN,
    RepeatUntil,
    Retry,
    Split,
    Split,
    LetWith,
    LetWithStopSource,
    Bulk,
    LetValue,
    LetError,
    LetStopped,
    Sequence,
    StopWhen,
    StopWhen,
    Within,
    ForkJoin,
    WhenAll,
    WhenAll,
    WhenAll,
    WhenAny,
    WhenAny,
    WhenAny,
];

/// Where something runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// The pool of one thread.
    One,
    /// The pool of two threads.
    Two,
    /// A strand over the pool of two threads.
    Strand,
    /// On the spot.
    Inline,
    /// The pool of two threads, its type erased.
    Erased,
}

const PLACES: &[Place] = &[Place::One, Place::Two, Place::Two, Place::Strand, Place::Inline, Place::Erased];

/// A graph, or a part of one.
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    pub(crate) place: Place,
    /// Whatever the kind makes of it: how many, or which variant.
    pub(crate) n: usize,
    /// Whether its closure panics.
    pub(crate) boom: bool,
    pub(crate) children: Vec<Arc<Self>>,
}

impl Plan {
    /// A graph of about `size` parts. `endless`: something above will stop it, so that it need not end by itself.
    pub(crate) fn random(random: &mut Random, size: usize, depth: usize, endless: bool) -> Self {
        let leaf = size <= 1 || depth == 0;
        let kind = match (leaf, endless) {
            (false, _) => random.pick(NODES),
            (true, true) if random.one_in(3) => random.pick(ENDLESS),
            (true, _) => random.pick(LEAVES),
        };
        let (place, n) = (random.pick(PLACES), random.below(12));
        let boom = random.one_in(if leaf { 8 } else { 12 });
        let mut plan = Self { kind, place, n, boom, children: Vec::new() };
        if leaf {
            return plan;
        }
        let count = match kind {
            ForkJoin => 3,
            WhenAll | WhenAny => 2 + random.below(3),
            LetValue | LetError | LetStopped | Sequence | StopWhen | Within => 2,
            _ => 1,
        };
        for i in 0..count {
            let size = match count {
                1 => size - 1,
                _ => 1 + random.below(2 * size / count),
            };
            let endless = match kind {
                Unstoppable => false,
                WriteEnv if plan.has_own_stop() => false,
                LetWithStopSource => true,
                StopWhen => endless || i == n % 2,
                WhenAny if n % 3 == 0 => endless || i != 0,
                WhenAll if n % 3 == 0 => endless || i != 0,
                _ => endless,
            };
            let mut child = Self::random(random, size, depth - 1, endless);
            // The one that is to stop its endless neighbours must do so.
            if i == 0 && n % 3 == 0 {
                match kind {
                    WhenAny if child.doors(false) & !(VALUE | PANICKED) != 0 => {
                        child = Self::leaf(Just, child)
                    }
                    WhenAll if child.doors(true) & VALUE != 0 => child = Self::leaf(JustError, child),
                    _ => {}
                }
            }
            plan.children.push(Arc::new(child));
        }
        plan
    }

    fn leaf(kind: Kind, like: Self) -> Self {
        Self { kind, children: Vec::new(), ..like }
    }

    /// Whether it replaces the stop token by one that is never stopped.
    pub(crate) fn has_own_stop(&self) -> bool {
        self.n.is_multiple_of(3)
    }

    pub(crate) fn contains(&self, kind: Kind) -> bool {
        self.kind == kind || self.children.iter().any(|child| child.contains(kind))
    }

    /// The doors through which it may end, if a stop may be requested around it or not. Never too few.
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
    // The first that fails stops the others, who may then fail otherwise.
    let stopped = children.iter().fold(0, |doors, child| doors | child.doors(true));
    both | stopped & !VALUE
}

fn any(children: &[Arc<Plan>], may_stop: bool) -> u8 {
    let alone: Vec<u8> = children.iter().map(|child| child.doors(may_stop)).collect();
    // The others are stopped by a value or a panic, and may then panic, too.
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

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.kind)?;
        let boom = if self.boom { ", boom" } else { "" };
        write!(f, "({:?}, {}{boom})", self.place, self.n)?;
        if self.children.is_empty() {
            return Ok(());
        }
        f.write_str(" ")?;
        f.debug_list().entries(&self.children).finish()
    }
}
