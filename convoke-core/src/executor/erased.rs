//! Any executor, in two words: one for the handle, one for what can be done with it.

use core::any::{Any, type_name};
use core::cell::UnsafeCell;
use core::fmt;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::NonNull;
use std::sync::Arc;

use super::contained::contain;
use super::{Executor, Home, InlineExecutor, Runnable, Timers};

/// A type-erased [`Executor`], two words wide. A handle that fits into a word, as ours do, is kept as it is;
/// a larger one is put behind an `Arc` once.
///
/// ```
/// use convoke::{ExecutorRef, InlineExecutor};
///
/// let executor = ExecutorRef::new(InlineExecutor);
/// assert_eq!(executor, executor.clone());
/// assert_eq!(executor.downcast_ref::<InlineExecutor>(), Some(&InlineExecutor));
/// assert_eq!(size_of::<ExecutorRef>(), 2 * size_of::<usize>());
/// ```
pub struct ExecutorRef {
    word: Word,
    table: &'static Table,
}

/// The executor itself if it fits, else an `Arc` of it. In a cell, as an executor may have cells of its own. Of an
/// executor that is lent, the address of the executor itself.
struct Word(UnsafeCell<MaybeUninit<*const ()>>);

impl Word {
    #[inline]
    const fn new(pointer: *const ()) -> Self {
        Self(UnsafeCell::new(MaybeUninit::new(pointer)))
    }

    /// The pointer in it.
    ///
    /// # Safety
    /// It was made by `new`.
    #[inline]
    unsafe fn pointer(&self) -> *const () {
        // SAFETY: it was made by `new`, and nobody writes a word that holds a pointer.
        unsafe { (*self.0.get()).assume_init() }
    }
}

struct Table {
    post: unsafe fn(&Word, Runnable),
    post_last: unsafe fn(Word, Runnable),
    post_cloned: unsafe fn(*const Word, Runnable),
    dispatch: unsafe fn(&Word, Runnable) -> Option<Runnable>,
    dispatch_cloned: unsafe fn(*const Word, Runnable) -> Option<Runnable>,
    parallelism: unsafe fn(&Word) -> usize,
    home: unsafe fn(&Word) -> Option<&Home>,
    timers: unsafe fn(&Word) -> Option<&dyn Timers>,
    context: unsafe fn(&Word) -> Option<&(dyn Any + Send + Sync)>,
    work_began: unsafe fn(&Word),
    work_ended: unsafe fn(&Word),
    clone: unsafe fn(&Word) -> ExecutorRef,
    lend: unsafe fn(&Word) -> ExecutorRef,
    drop: unsafe fn(&mut Word),
    eq: unsafe fn(&Word, &dyn Any) -> bool,
    get: unsafe fn(&Word) -> &dyn Any,
    type_name: fn() -> &'static str,
    queues_at_home: bool,
}

// SAFETY: an executor is `Send` and `Sync`, and the word holds nothing else.
unsafe impl Send for ExecutorRef {}
// SAFETY: as above.
unsafe impl Sync for ExecutorRef {}

// As for every other handle. What an executor does after a panic is its own affair.
impl std::panic::RefUnwindSafe for ExecutorRef {}

impl ExecutorRef {
    /// Erases the type of `executor`. One that is erased already is returned as it is.
    #[inline]
    pub fn new<E: Executor>(executor: E) -> Self {
        let mut executor = Some(executor);
        if let Some(erased) = (&mut executor as &mut dyn Any).downcast_mut::<Option<Self>>() {
            return erased.take().expect("put there above");
        }
        let executor = executor.expect("put there above");
        Kept::<E>::put(executor)
    }

    /// Lends the executor without counting a reference. Copies nothing that the executor might change: an executor that is
    /// stored inline is lent by its address.
    ///
    /// # Safety
    /// This outlives what is returned, and does not move meanwhile.
    #[inline]
    pub(crate) unsafe fn lend(&self) -> ManuallyDrop<Self> {
        // SAFETY: the table was made for the type of what the word holds. That this outlives what is returned is part
        // of the contract of this function.
        ManuallyDrop::new(unsafe { (self.table.lend)(&self.word) })
    }

    /// Whether this is `executor`, which may itself be erased.
    pub fn is<E: Executor>(&self, executor: &E) -> bool {
        match (executor as &dyn Any).downcast_ref::<Self>() {
            Some(erased) => self == erased,
            None => self.downcast_ref() == Some(executor),
        }
    }

    /// See [`Executor::QUEUES_AT_HOME`].
    #[doc(hidden)]
    #[inline]
    pub fn queues_at_home(&self) -> bool {
        self.table.queues_at_home
    }

    /// Queues the work through a clone of the handle, for callers whose own handle may be freed by the work: another thread may
    /// run it to its end while `post` is still executing. A panic of the executor's `clone` or `post` ends here and is
    /// written to the error stream; if the executor has dropped the work by then, the work has completed as stopped.
    ///
    /// # Safety
    /// The handle is there until the work is run or dropped. It is a pointer, for a reference would have to be valid until this
    /// returns.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn post_cloned(this: NonNull<Self>, runnable: Runnable) {
        // SAFETY: the handle is there: nobody has the runnable yet. The table was made for the type of what the word holds.
        unsafe { (this.as_ref().table.post_cloned)(&raw const (*this.as_ptr()).word, runnable) }
    }

    /// Dispatches the work through a clone of the handle, as [`post_cloned`](ExecutorRef::post_cloned) posts it.
    ///
    /// # Safety
    /// As for `post_cloned`.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn dispatch_cloned(this: NonNull<Self>, runnable: Runnable) -> Option<Runnable> {
        // SAFETY: the handle is there: nobody has the runnable yet. The table was made for the type of what the word holds.
        unsafe { (this.as_ref().table.dispatch_cloned)(&raw const (*this.as_ptr()).word, runnable) }
    }

    /// The executor, if it is an `E`.
    pub fn downcast_ref<E: Executor>(&self) -> Option<&E> {
        // SAFETY: the table was made for the type of what the word holds.
        unsafe { (self.table.get)(&self.word) }.downcast_ref()
    }
}

#[diagnostic::do_not_recommend]
impl Executor for ExecutorRef {
    #[inline]
    fn post(&self, runnable: Runnable) {
        // SAFETY: the table was made for the type of what the word holds.
        unsafe { (self.table.post)(&self.word, runnable) }
    }

    #[inline]
    fn post_last(self, runnable: Runnable) {
        let this = ManuallyDrop::new(self);
        // SAFETY: as in `post`; the word is given away and not used again.
        unsafe { (this.table.post_last)((&raw const this.word).read(), runnable) }
    }

    #[inline]
    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        // SAFETY: as in `post`.
        unsafe { (self.table.dispatch)(&self.word, runnable) }
    }

    fn parallelism(&self) -> usize {
        // SAFETY: as in `post`.
        unsafe { (self.table.parallelism)(&self.word) }
    }

    #[inline]
    fn home(&self) -> Option<&Home> {
        // SAFETY: as in `post`.
        unsafe { (self.table.home)(&self.word) }
    }

    #[inline]
    fn timers(&self) -> Option<&dyn Timers> {
        // SAFETY: as in `post`.
        unsafe { (self.table.timers)(&self.word) }
    }

    fn context(&self) -> Option<&(dyn Any + Send + Sync)> {
        // SAFETY: as in `post`.
        unsafe { (self.table.context)(&self.word) }
    }

    fn work_began(&self) {
        // SAFETY: as in `post`.
        unsafe { (self.table.work_began)(&self.word) }
    }

    fn work_ended(&self) {
        // SAFETY: as in `post`.
        unsafe { (self.table.work_ended)(&self.word) }
    }
}

impl Clone for ExecutorRef {
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: as in `post`.
        unsafe { (self.table.clone)(&self.word) }
    }
}

impl Drop for ExecutorRef {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as in `post`; the word is not used afterwards.
        unsafe { (self.table.drop)(&mut self.word) }
    }
}

impl PartialEq for ExecutorRef {
    fn eq(&self, other: &Self) -> bool {
        // SAFETY: each table was made for the type of what its word holds.
        unsafe { (self.table.eq)(&self.word, (other.table.get)(&other.word)) }
    }
}

impl Default for ExecutorRef {
    fn default() -> Self {
        Self::new(InlineExecutor)
    }
}

impl fmt::Debug for ExecutorRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExecutorRef({})", (self.table.type_name)())
    }
}

/// How an `E` is kept in a word. All functions ask that the word was made by `put`.
struct Kept<E>(core::marker::PhantomData<E>);

impl<E: Executor> Kept<E> {
    const FITS: bool = size_of::<E>() <= size_of::<Word>() && align_of::<E>() <= align_of::<Word>();

    const TABLE: &'static Table = &Table {
        post: |word, runnable| Self::get(word).post(runnable),
        post_last: Self::post_last,
        post_cloned: Self::post_cloned,
        dispatch_cloned: Self::dispatch_cloned,
        dispatch: |word, runnable| Self::get(word).dispatch(runnable),
        parallelism: |word| Self::get(word).parallelism(),
        home: |word| Self::get(word).home(),
        timers: |word| Self::get(word).timers(),
        context: |word| Self::get(word).context(),
        work_began: |word| Self::get(word).work_began(),
        work_ended: |word| Self::get(word).work_ended(),
        clone: Self::duplicate,
        lend: Self::lend,
        drop: Self::discard,
        eq: |a, b| b.downcast_ref() == Some(Self::get(a)),
        get: |word| Self::get(word),
        type_name: type_name::<E>,
        queues_at_home: E::QUEUES_AT_HOME,
    };

    #[inline]
    fn put(executor: E) -> ExecutorRef {
        if !Self::FITS {
            return ExecutorRef {
                word: Word::new(Arc::into_raw(Arc::new(executor)).cast()),
                table: Self::TABLE,
            };
        }
        let mut word = MaybeUninit::<*const ()>::uninit();
        // SAFETY: it fits, by size and by alignment.
        unsafe { word.as_mut_ptr().cast::<E>().write(executor) };
        ExecutorRef { word: Word(UnsafeCell::new(word)), table: Self::TABLE }
    }

    #[inline]
    fn get(word: &Word) -> &E {
        // SAFETY: the word was made by `put`, which chose by the same constant.
        unsafe { if Self::FITS { &*word.0.get().cast::<E>() } else { &*word.pointer().cast::<E>() } }
    }

    #[inline]
    fn duplicate(word: &Word) -> ExecutorRef {
        if Self::FITS {
            return Self::put(Self::get(word).clone());
        }
        // SAFETY: the word holds what `Arc::into_raw` gave.
        let executor = unsafe { word.pointer() };
        // SAFETY: the pointer came from `Arc::into_raw`, and the count that the word owns keeps it alive.
        unsafe { Arc::increment_strong_count(executor.cast::<E>()) };
        ExecutorRef { word: Word::new(executor), table: Self::TABLE }
    }

    #[inline]
    fn lend(word: &Word) -> ExecutorRef {
        if Self::FITS {
            let executor = core::ptr::from_ref(Self::get(word));
            return ExecutorRef { word: Word::new(executor.cast()), table: Lent::<E>::TABLE };
        }
        // Not one that is made from a reference to the executor: a clone of what is lent writes to the counts beside it.
        // SAFETY: the word holds what `Arc::into_raw` gave.
        ExecutorRef { word: Word::new(unsafe { word.pointer() }), table: Self::TABLE }
    }

    fn post_last(word: Word, runnable: Runnable) {
        if Self::FITS {
            // SAFETY: the word was made by `put`, which chose by the same constant; the caller gives it up.
            return unsafe { word.0.get().cast::<E>().read() }.post_last(runnable);
        }
        // Dropped also when `post` panics.
        let executor = ExecutorRef { word, table: Self::TABLE };
        Self::get(&executor.word).post(runnable);
    }

    /// # Safety
    /// As for [`ExecutorRef::post_cloned`].
    unsafe fn post_cloned(word: *const Word, runnable: Runnable) {
        contain::<E, _>(move || {
            // SAFETY: the word is there until the work is run or dropped, and nobody has it before `post_last` is called.
            let word = || unsafe { &*word };
            if Self::FITS {
                Self::get(word()).clone().post_last(runnable);
            } else {
                Self::duplicate(word()).post_last(runnable);
            }
        });
    }

    /// # Safety
    /// As for [`ExecutorRef::dispatch_cloned`].
    unsafe fn dispatch_cloned(word: *const Word, runnable: Runnable) -> Option<Runnable> {
        // SAFETY: the word is there until the work is run or dropped, and nobody has it before `dispatch` is called.
        contain::<E, _>(move || unsafe { Self::duplicate(&*word) }.dispatch(runnable)).flatten()
    }

    #[inline]
    fn discard(word: &mut Word) {
        // SAFETY: the word was made by `put`, which chose by the same constant; the caller gives it up.
        unsafe {
            if Self::FITS {
                word.0.get().cast::<E>().drop_in_place();
            } else {
                drop(Arc::from_raw(word.pointer().cast::<E>()));
            }
        }
    }
}

/// How an `E` that fits into a word is reached where somebody else keeps it. All functions ask that the word was made by
/// [`Kept::lend`], and that what was lent is still there.
struct Lent<E>(core::marker::PhantomData<E>);

impl<E: Executor> Lent<E> {
    const TABLE: &'static Table = &Table {
        post: |word, runnable| Self::get(word).post(runnable),
        post_last: |word, runnable| Self::get(&word).post(runnable),
        post_cloned: |word, runnable| {
            // SAFETY: the word is there until the work is run or dropped, and nobody has it before `post_last` is called.
            contain::<E, _>(move || unsafe { Self::get(&*word) }.clone().post_last(runnable));
        },
        dispatch_cloned: |word, runnable| {
            // SAFETY: the word is there until the work is run or dropped, and nobody has it before `dispatch` is called.
            contain::<E, _>(move || unsafe { Self::get(&*word) }.clone().dispatch(runnable)).flatten()
        },
        dispatch: |word, runnable| Self::get(word).dispatch(runnable),
        parallelism: |word| Self::get(word).parallelism(),
        home: |word| Self::get(word).home(),
        timers: |word| Self::get(word).timers(),
        context: |word| Self::get(word).context(),
        work_began: |word| Self::get(word).work_began(),
        work_ended: |word| Self::get(word).work_ended(),
        clone: Self::duplicate,
        lend: Self::lend,
        drop: |_| (),
        eq: |a, b| b.downcast_ref() == Some(Self::get(a)),
        get: |word| Self::get(word),
        type_name: type_name::<E>,
        queues_at_home: E::QUEUES_AT_HOME,
    };

    #[inline]
    fn get(word: &Word) -> &E {
        // SAFETY: the word was made by `Kept::lend` from a reference, and what it led to is still there.
        unsafe { &*word.pointer().cast::<E>() }
    }

    fn duplicate(word: &Word) -> ExecutorRef {
        Kept::put(Self::get(word).clone())
    }

    fn lend(word: &Word) -> ExecutorRef {
        // SAFETY: the word was made by `Kept::lend`.
        ExecutorRef { word: Word::new(unsafe { word.pointer() }), table: Self::TABLE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ByHand;

    #[test]
    fn an_erased_executor_is_not_erased_again() {
        let by_hand = ByHand::new();
        let twice = ExecutorRef::new(ExecutorRef::new(by_hand.clone()));
        assert!(twice == ExecutorRef::new(by_hand.clone()));
        assert!(twice.downcast_ref::<ByHand>() == Some(&by_hand));
    }

    /// One that does not fit into a word.
    #[derive(Clone, PartialEq)]
    struct Large(ByHand, [usize; 2]);

    impl Executor for Large {
        fn post(&self, runnable: Runnable) {
            self.0.post(runnable);
        }
    }

    #[test]
    fn what_is_lent_can_be_cloned() {
        let by_hand = ByHand::new();
        for erased in [ExecutorRef::new(by_hand.clone()), ExecutorRef::new(Large(by_hand, [1, 2]))] {
            // SAFETY: it stays where it is, and goes after what was lent.
            let lent = unsafe { erased.lend() };
            // SAFETY: as above.
            let lent_again = unsafe { lent.lend() };
            let clones = [(*lent).clone(), (*lent_again).clone()];
            assert!(clones[0] == erased && clones[1] == erased);
        }
    }

    #[test]
    fn it_is_the_executor_it_was_made_of_erased_or_not() {
        let (one, other) = (ByHand::new(), ByHand::new());
        let erased = ExecutorRef::new(one.clone());
        assert!(erased.is(&one) && erased.is(&erased.clone()));
        assert!(!erased.is(&other) && !erased.is(&InlineExecutor) && !erased.is(&ExecutorRef::new(other)));
    }
}
