//! The shape of a graph, generated from a seed.

use convoke::executor::Priority;
use convoke::raw::Random;
use std::fmt;
use std::sync::Arc;

use crate::random_graphs::doors::{PANICKED, VALUE};

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[random.below(from.len())]
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

/// An executor of the test.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// The pool of one thread.
    One,
    /// The pool of two threads.
    Two,
    /// The pool of two threads, with a priority.
    Prior(Priority),
    /// A strand over the pool of two threads.
    Strand,
    /// A limited view of the pool of two threads, for one task at a time.
    Limited,
    /// Inline, inside `post`.
    Inline,
    /// The pool of two threads, its type erased.
    Erased,
}

const PLACES: &[Place] = &[
    Place::One,
    Place::Two,
    Place::Prior(Priority::High),
    Place::Prior(Priority::Low),
    Place::Strand,
    Place::Limited,
    Place::Inline,
    Place::Erased,
];

/// A graph, or a part of one.
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    pub(crate) place: Place,
    /// A parameter of the kind: a count or a variant.
    pub(crate) n: usize,
    /// True if its closure panics.
    pub(crate) boom: bool,
    pub(crate) children: Vec<Arc<Self>>,
}

impl Plan {
    /// Generates a graph of about `size` parts. If `endless`, something above will stop it, so it need not
    /// end by itself.
    pub(crate) fn random(random: &mut Random, size: usize, depth: usize, endless: bool) -> Self {
        let leaf = size <= 1 || depth == 0;
        let kind = match (leaf, endless) {
            (false, _) => pick(random, NODES),
            (true, true) if random.one_in(3) => pick(random, ENDLESS),
            (true, _) => pick(random, LEAVES),
        };
        let (place, n) = (pick(random, PLACES), random.below(12));
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
            // The part that is to stop its endless siblings must do so.
            if i == 0 && n % 3 == 0 {
                match kind {
                    WhenAny if !child.surely_has_a_value() => child = Self::leaf(Just, child),
                    WhenAll if child.doors(true) & VALUE != 0 => child = Self::leaf(JustError, child),
                    _ => {}
                }
            }
            plan.children.push(Arc::new(child));
        }
        plan
    }

    /// Returns true if it surely has a value, or panics, unless it is stopped. Shared work may outlive the
    /// wait whose loop it must return to; then what runs `on` an executor is stopped.
    fn surely_has_a_value(&self) -> bool {
        self.doors(false) & !(VALUE | PANICKED) == 0 && !self.contains(On)
    }

    fn leaf(kind: Kind, like: Self) -> Self {
        Self { kind, children: Vec::new(), ..like }
    }

    /// Returns true if it replaces the stop token by one that is never stopped.
    pub(crate) fn has_own_stop(&self) -> bool {
        self.n.is_multiple_of(3)
    }

    pub(crate) fn contains(&self, kind: Kind) -> bool {
        self.kind == kind || self.children.iter().any(|child| child.contains(kind))
    }
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
