//! How a stop request goes down the tree at the time it is made, on the thread that makes it: from a task to
//! the scopes that are open in it, to their children, and so on. No task is polled for it. Without this, a
//! child would hear of a stop only after its parent was polled, which may be busy or queued behind others.
//!
//! A scope whose future was polled in a task is a *listener* of that task, unless a shield or a generator is around
//! it: then the stop of the task may not concern it, and it hears of a stop when it is polled. It listens before its
//! body is polled, which may compute for long while its children run elsewhere. Work that is awaited directly does
//! not listen: it hears of a stop from the poll of what awaits it. The rules:
//!
//! 1. The list of listeners is in the cold state of the task, which is there as long as the task's memory, and
//!    is used under its lock. `State::listen` says that there is one.
//! 2. A listener in the list is alive: its [`Listening`], which has a counted reference to the task, is
//!    dropped before the scope's future gives up its own reference to the listener, and takes it off the list.
//! 3. A walk takes a listener off the list once, with a reference that it counts under the lock. From then on
//!    `next` of the listener belongs to the walk. It is never added to a list again.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::ptr::NonNull;

use convoke_core::raw::{Frame, FrameArc, IntrusiveList, Linked, Links, SpinLock};
use convoke_core::{Panic, StopReason};

use super::header::TaskHeader;
use super::inside::Inside;
use super::reference::{Alive, TaskRef};

/// A scope, as it hears of the stop of the task that it is open in. It is a field of what it stands for.
pub(crate) struct StopListener {
    links: Links<Self>,
    /// Under the lock of the list.
    stage: Cell<Stage>,
    /// The listener that the walk tells after this one: rule 3.
    next: Cell<Option<NonNull<StopListener>>>,
    /// The value in a `FrameArc` that this is a part of, and what can be done with it. Written before the
    /// listener is added to a list.
    value: Cell<NonNull<()>>,
    kind: Cell<&'static ListenerKind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// In no list.
    Idle,
    /// In the list of a task.
    Listening,
    /// Taken off the list by a walk: the stop was heard.
    Told,
}

/// The functions for one type of values that hear of a stop.
struct ListenerKind {
    /// Counts a reference to the value.
    keep: unsafe fn(NonNull<()>),
    /// Asks what is below the value to stop, and gives up the reference of `keep`.
    tell: unsafe fn(NonNull<()>, &mut StopWalk),
}

/// A value that hears of a stop.
///
/// # Safety
/// `listener` returns a part of `self`, the same each time.
pub(crate) unsafe trait HearsStop: Sized {
    /// Returns the listener.
    fn listener(&self) -> &StopListener;

    /// Asks what is below to stop, and adds what is below that to the walk.
    fn ask_below(&self, walk: &mut StopWalk);
}

// SAFETY: `links` is a field that only the lists of listeners use.
unsafe impl Linked for StopListener {
    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

impl StopListener {
    /// Creates a listener that is in no list.
    #[inline]
    pub(crate) const fn new() -> Self {
        const NOTHING: ListenerKind = ListenerKind { keep: |_| {}, tell: |_, _| {} };
        Self {
            links: Links::new(),
            stage: Cell::new(Stage::Idle),
            next: Cell::new(None),
            value: Cell::new(NonNull::dangling()),
            kind: Cell::new(&NOTHING),
        }
    }
}

/// The listeners of one task.
pub(super) struct StopListeners(SpinLock<List>);

struct List(IntrusiveList<StopListener>);

// SAFETY: the nodes are used by the holder of the lock, on any thread: rules 1 and 2.
unsafe impl Send for List {}

impl StopListeners {
    pub(super) fn new() -> Self {
        Self(SpinLock::new(List(IntrusiveList::new())))
    }
}

/// The place of a listener in the list of the task that its future is polled in. Dropped before the future
/// gives up its reference to the listener.
#[derive(Default)]
pub(crate) struct Listening {
    /// The address of the owner of the frame that it was polled in last, or zero if that was sheltered.
    polled_in: usize,
    /// The task whose list the listener was added to, and the listener.
    added: Option<(TaskRef, NonNull<StopListener>)>,
}

// SAFETY: a reference to a task may be dropped on any thread, and the listener is used under the lock of its
// list: rule 1.
unsafe impl Send for Listening {}
// SAFETY: `&Listening` allows nothing.
unsafe impl Sync for Listening {}

impl Listening {
    /// Makes the value hear of a stop of the task that polls its future in this frame. Does nothing if it does
    /// already. [`end_if_moved`](Listening::end_if_moved) was called in the same poll.
    #[inline]
    pub(crate) fn listen<T: HearsStop>(&mut self, frame: &Frame<'_>, value: &FrameArc<T>) {
        let polled_in = place_of(frame);
        if polled_in != self.polled_in {
            self.polled_in = polled_in;
            if let Some(task) = Inside::of(frame.operation_owner()) {
                self.begin(task, value);
            }
        }
    }

    /// Takes the value off its list, if the future is polled elsewhere now: in another task, or under a shield.
    #[inline]
    pub(crate) fn end_if_moved(&mut self, frame: &Frame<'_>) {
        if self.polled_in != 0 && self.polled_in != place_of(frame) {
            self.polled_in = 0;
            self.end();
        }
    }

    /// Adds the value to the list of the task. Without memory for the list it hears of a stop when it is
    /// polled.
    #[inline(never)]
    fn begin<T: HearsStop>(&mut self, task: &Inside, value: &FrameArc<T>) {
        let Some(cold) = task.try_make_cold() else { return };
        let listener = value.listener();
        let mut list = cold.listeners.0.lock();
        if listener.stage.get() != Stage::Idle {
            return;
        }
        listener.value.set(FrameArc::as_raw(value));
        listener.kind.set(T::KIND);
        listener.stage.set(Stage::Listening);
        let (listener, header) = (NonNull::from(listener), task.header());
        // SAFETY: rules 1 and 2 of the list, by ours: the listener is in no list, and is taken off before it
        // goes. Rule 3: the lock is held. Fact 2 of `Alive`: this thread is inside.
        let counted = unsafe {
            list.0.push_front(listener);
            Alive::new(NonNull::from(header)).counted()
        };
        drop(list);
        self.added = Some((counted, listener));
        header.state.listen(header.access());
    }

    /// Takes the value off the list, if it is in one.
    #[inline]
    pub(crate) fn end(&mut self) {
        if self.added.is_some() {
            self.remove();
        }
    }

    #[cold]
    #[inline(never)]
    fn remove(&mut self) {
        let Some((task, listener)) = self.added.take() else { return };
        let listeners = task.alive().header().listeners().expect("`begin` made the list");
        let mut list = listeners.0.lock();
        // SAFETY: rule 2: the listener is alive. Rule 1: the lock is held, and the stage says if it is in this
        // list.
        unsafe {
            let stage = &listener.as_ref().stage;
            if stage.get() == Stage::Listening {
                stage.set(Stage::Idle);
                list.0.remove(listener);
            }
        }
    }
}

/// Returns the address of the owner of the frame, or zero if the frame is sheltered.
#[inline]
fn place_of(frame: &Frame<'_>) -> usize {
    if frame.is_sheltered() { 0 } else { core::ptr::from_ref(frame.operation_owner()).addr() }
}

impl Drop for Listening {
    #[inline]
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").finish_non_exhaustive()
    }
}

impl TaskHeader {
    /// Returns the listeners of the task, if there is a list of them.
    #[inline]
    fn listeners(&self) -> Option<&StopListeners> {
        // SAFETY: `State::listen` was called from inside, after the task led to its cold state, to which it leads
        // until its memory is freed. `listeners` is open to all threads (rule 4 of `ColdState`), and no other
        // field is touched.
        self.state.is_listened_to().then(|| unsafe { &(*self.cold_address().as_ptr()).listeners })
    }
}

/// Functions for a value in a `FrameArc`.
trait HasKind: HearsStop {
    const KIND: &'static ListenerKind = &ListenerKind {
        // SAFETY: rule 2: `add_listeners`, which alone calls `keep`, holds the lock of the list that the listener is in.
        keep: |value| unsafe { FrameArc::<Self>::count_raw(value) },
        tell: |value, walk| {
            // SAFETY: rule 3: the walk counted this reference by `keep`, and gives it up here, once.
            let value = unsafe { FrameArc::<Self>::from_raw(value) };
            value.ask_below(walk);
        },
    };
}

impl<T: HearsStop> HasKind for T {}

/// A stop request on its way down. Scopes that are still to be told are linked through themselves, so that
/// neither depth nor width costs stack or memory.
pub(crate) struct StopWalk {
    reason: StopReason,
    next: Option<NonNull<StopListener>>,
}

impl StopWalk {
    /// Begins a walk with this reason.
    #[inline]
    pub(crate) fn new(reason: StopReason) -> Self {
        Self { reason, next: None }
    }

    /// Returns the reason of the request.
    pub(crate) fn reason(&self) -> StopReason {
        self.reason
    }

    /// Adds the scopes that are open in a task, which was just asked to stop.
    #[inline]
    pub(super) fn add_below(&mut self, task: &TaskHeader) {
        if let Some(listeners) = task.listeners() {
            self.add_listeners(listeners);
        }
    }

    #[cold]
    fn add_listeners(&mut self, listeners: &StopListeners) {
        let mut list = listeners.0.lock();
        while let Some(listener) = list.0.first().map(NonNull::from) {
            // SAFETY: rules 1 and 2: the lock is held, and the listener is in the list, and alive.
            unsafe {
                list.0.remove(listener);
                let listener = listener.as_ref();
                listener.stage.set(Stage::Told);
                (listener.kind.get().keep)(listener.value.get());
                listener.next.set(self.next);
            }
            self.next = Some(listener);
        }
    }

    /// Goes down until all are told. If code of the program panics on the way, such as an executor's, the rest
    /// is told nevertheless; then the first panic is resumed.
    #[inline]
    pub(crate) fn run(mut self) {
        if self.next.is_some()
            && let Err(panic) = self.tell_all()
        {
            panic.resume();
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_all(&mut self) -> Result<(), Panic> {
        let mut first = Ok(());
        while let Some(listener) = self.next {
            // SAFETY: rule 3: the walk has a reference to the value, and so to the listener, until `tell` gives
            // it up.
            let told = unsafe {
                let listener = listener.as_ref();
                self.next = listener.next.get();
                let (kind, value) = (listener.kind.get(), listener.value.get());
                Panic::catch(|| (kind.tell)(value, self))
            };
            first = first.and(told);
        }
        first
    }
}

impl Drop for StopWalk {
    #[inline]
    fn drop(&mut self) {
        if self.next.is_some() {
            // A panic came before. The panic hook has reported this one.
            let _ = self.tell_all();
        }
    }
}
