//! The regions of a program under exploration: numbered in the order in which they are first polled, which is
//! the same in every run, and asked to stop one at a time.

use core::cell::{Cell, RefCell};
use core::fmt;
use core::task::{Context, Waker};
use std::collections::BTreeMap;

use crate::task::{Inside, TaskId};

/// The part of a region that explorations see.
pub struct Explored {
    /// The number of the region, or zero before it is polled in an exploration.
    number: Cell<usize>,
}

thread_local! {
    /// `Some` while a program is explored on this thread: the number of shields around what is polled now.
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
    /// The address of its task. Compared, never dereferenced.
    task: Option<usize>,
}

impl Regions {
    const fn new() -> Self {
        Self { last: 0, alive: BTreeMap::new(), asked: None }
    }
}

/// Watches the regions of this thread until it is dropped.
#[derive(Debug)]
pub struct Watching(());

impl Watching {
    /// Starts watching.
    pub fn begin() -> Self {
        WATCHED.set(Some(0));
        Self(())
    }

    /// Returns the numbers of the live regions that were not asked to stop, in order.
    pub fn numbers(&self) -> Vec<usize> {
        REGIONS.with_borrow(|regions| regions.alive.keys().copied().collect())
    }

    /// Returns the address of the task that a region is in.
    pub fn task_of(&self, number: usize) -> Option<usize> {
        REGIONS.with_borrow(|regions| regions.alive.get(&number).and_then(|alive| alive.task))
    }

    /// Asks a region to stop. Returns false if it is gone.
    pub fn ask(&self, number: usize) -> bool {
        // The waker is taken out, and neither cloned nor woken while the regions are borrowed: it may be code
        // of the program, and call back here. When the region is polled again it is removed.
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

impl Default for Explored {
    fn default() -> Self {
        Self::new()
    }
}

impl Explored {
    /// True: an exploration may ask a region to stop.
    pub const IS_POSSIBLE: bool = true;

    /// Creates the part of a region that was not polled yet.
    pub const fn new() -> Self {
        Self { number: Cell::new(0) }
    }

    /// Registers the region, which is not shielded and was not asked yet and is about to be polled with this
    /// waker. Returns true if it is to stop.
    #[inline]
    pub fn is_asked(&self, cx: &Context<'_>) -> bool {
        // Work in a shield cleans up: a stop is not for it.
        WATCHED.get() == Some(0) && self.register(cx.waker().clone())
    }

    /// Registers the region, or takes the request to stop.
    #[cold]
    fn register(&self, waker: Waker) -> bool {
        let mut alive = Some(Alive { waker, task: Inside::current().map(TaskId::address) });
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
        // Both wakers are dropped without the borrow: see `ask`.
        drop((alive, before));
        asked
    }

    /// Marks what is polled as shielded, until the guard is dropped.
    #[inline]
    pub fn shield(&self) -> Shielding {
        let before = WATCHED.get();
        WATCHED.set(before.map(|shields| shields + 1));
        Shielding(before)
    }
}

/// The guard of [`Explored::shield`].
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
