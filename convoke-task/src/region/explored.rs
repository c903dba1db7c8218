//! The regions of a program that is explored: numbered in the order in which they are first polled, which is the same every
//! time, and asked to stop one at a time.

use core::cell::{Cell, RefCell};
use core::fmt;
use core::task::{Context, Waker};
use std::collections::BTreeMap;

use crate::task::Inside;

/// What explorations see of a region; it is part of the region.
pub struct Explored {
    /// Zero until it is polled in a program that is explored.
    number: Cell<usize>,
}

thread_local! {
    /// Whether a program is being explored on this thread, and how many shields are around what is polled now.
    static WATCHED: Cell<Option<usize>> = const { Cell::new(None) };
    static REGIONS: RefCell<Regions> = const { RefCell::new(Regions::new()) };
}

struct Regions {
    last: usize,
    alive: BTreeMap<usize, Alive>,
    asked: Option<usize>,
}

struct Alive {
    waker: Waker,
    /// The address of its task. Compared, never followed.
    task: Option<usize>,
}

impl Regions {
    const fn new() -> Self {
        Self { last: 0, alive: BTreeMap::new(), asked: None }
    }
}

/// The regions of this thread are watched until it is dropped.
#[derive(Debug)]
pub struct Watching(());

impl Watching {
    pub fn begin() -> Self {
        WATCHED.set(Some(0));
        Self(())
    }

    /// The numbers of those that are there and were not asked to stop, in their order.
    pub fn numbers(&self) -> Vec<usize> {
        REGIONS.with_borrow(|regions| regions.alive.keys().copied().collect())
    }

    /// The address of the task that this one is in.
    pub fn task_of(&self, number: usize) -> Option<usize> {
        REGIONS.with_borrow(|regions| regions.alive.get(&number).and_then(|alive| alive.task))
    }

    /// Asks this one to stop. False if it is not there.
    pub fn ask(&self, number: usize) -> bool {
        // Taken out, and neither cloned nor woken with the regions borrowed: it may be anybody's waker, and come back here. When the
        // region is polled again it is not among them any more.
        let waker = REGIONS.with_borrow_mut(|regions| {
            let alive = regions.alive.get_mut(&number)?;
            regions.asked = Some(number);
            Some(core::mem::replace(&mut alive.waker, Waker::noop().clone()))
        });
        waker.map(Waker::wake).is_some()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        WATCHED.set(None);
        let regions = REGIONS.replace(Regions::new());
        drop(regions);
    }
}

impl Explored {
    pub const fn new() -> Self {
        Self { number: Cell::new(0) }
    }

    /// The region, which is not shielded and was not asked yet, is about to be polled with this waker. True if it is to stop.
    #[inline]
    pub fn is_asked(&self, cx: &Context<'_>) -> bool {
        // What is in a shield cleans up: a stop is not for it.
        WATCHED.get() == Some(0) && self.look(cx.waker().clone())
    }

    #[cold]
    fn look(&self, waker: Waker) -> bool {
        let mut alive = Some(Alive { waker, task: Inside::current().map(|task| task.addr().get()) });
        let (asked, before) = REGIONS.with_borrow_mut(|regions| {
            if self.number.get() == 0 {
                regions.last += 1;
                self.number.set(regions.last);
            }
            let number = self.number.get();
            if regions.asked == Some(number) {
                regions.asked = None;
                return (true, regions.alive.remove(&number));
            }
            (false, alive.take().and_then(|alive| regions.alive.insert(number, alive)))
        });
        // Both wakers, without the regions: as in `ask`.
        drop((alive, before));
        asked
    }

    /// A shield is around what is polled until this is dropped.
    #[inline]
    pub fn shield(&self) -> Shielding {
        let before = WATCHED.get();
        WATCHED.set(before.map(|shields| shields + 1));
        Shielding(before)
    }
}

/// See [`Explored::shield`].
#[derive(Debug)]
pub struct Shielding(Option<usize>);

impl Drop for Shielding {
    fn drop(&mut self) {
        WATCHED.set(self.0);
    }
}

impl Drop for Explored {
    fn drop(&mut self) {
        if self.number.get() != 0 && WATCHED.try_with(Cell::get).is_ok_and(|watched| watched.is_some()) {
            let gone = REGIONS.with_borrow_mut(|regions| regions.alive.remove(&self.number.get()));
            drop(gone);
        }
    }
}

impl fmt::Debug for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Explored").field(&self.number.get()).finish()
    }
}
