//! An executor of any type in two words: one for the handle, one for the table of its functions.
//!
//! 1. `table` is that of [`Stored`] or [`Borrowed`] for the type `E` of the executor, and the same one has
//!    made `word`.
//! 2. The word of [`Stored`] owns an `E`: in the word itself if it fits, else in an `Arc`. `FITS` decides
//!    which.
//! 3. The word of [`Borrowed`] is the address of an `E` that fits into a word, and that outlives it.

#![allow(unsafe_code)]

use core::any::{Any, type_name};
use core::cell::UnsafeCell;
use core::fmt;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::NonNull;
use std::sync::Arc;

use super::contained::contain;
use super::{Executor, InlineExecutor, OwnerThread, Runnable, Timers};

/// A type-erased [`Executor`], two words wide. A handle that fits into a word, as those of Convoke do, is
/// stored inline; a larger one is put into an `Arc`, once.
///
/// ```
/// use convoke::executor::{ExecutorRef, InlineExecutor};
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

/// The executor itself if it fits, else an `Arc` of it; for a borrowed executor, its address. In a cell,
/// because an executor may have cells of its own.
struct Word(UnsafeCell<MaybeUninit<*const ()>>);

impl Word {
    #[inline]
    const fn new(pointer: *const ()) -> Self {
        Self(UnsafeCell::new(MaybeUninit::new(pointer)))
    }

    /// Returns the pointer in the word.
    ///
    /// # Safety
    /// The word was made by `new`.
    #[inline]
    unsafe fn pointer(&self) -> *const () {
        // SAFETY: `new` has initialised it, and nothing writes to a word that holds a pointer.
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
    owner_thread: unsafe fn(&Word) -> Option<&OwnerThread>,
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
    queues_locally: bool,
}

// SAFETY: an executor is `Send` and `Sync`, and rules 2 and 3 say that the word holds one, an `Arc` of one,
// or the address of one.
unsafe impl Send for ExecutorRef {}
// SAFETY: an executor is `Send` and `Sync`, and a shared word gives out only shared references to it.
unsafe impl Sync for ExecutorRef {}

// Like every other handle. An executor is responsible for its own state after a panic.
impl std::panic::RefUnwindSafe for ExecutorRef {}

impl ExecutorRef {
    /// Erases the type of `executor`. Returns it as it is if it is erased already.
    #[inline]
    pub fn new<E: Executor>(executor: E) -> Self {
        let mut executor = Some(executor);
        if let Some(erased) = (&mut executor as &mut dyn Any).downcast_mut::<Option<Self>>() {
            return erased.take().expect("`executor` was set to `Some` above");
        }
        let executor = executor.expect("`executor` was set to `Some` above, and not taken");
        Stored::<E>::put(executor)
    }

    /// Lends the executor without counting a reference. Copies nothing that the executor might change: an
    /// executor that is stored inline is lent by its address.
    ///
    /// # Safety
    /// `self` outlives the result, and does not move meanwhile.
    #[inline]
    pub(crate) unsafe fn lend(&self) -> ManuallyDrop<Self> {
        // SAFETY: rule 1: the table fits the word. `self` outlives the result, by the contract of this
        // function.
        ManuallyDrop::new(unsafe { (self.table.lend)(&self.word) })
    }

    /// Returns true if this is `executor`, which may itself be erased.
    pub fn is<E: Executor>(&self, executor: &E) -> bool {
        match (executor as &dyn Any).downcast_ref::<Self>() {
            Some(erased) => self == erased,
            None => self.downcast_ref() == Some(executor),
        }
    }

    /// Returns [`Executor::QUEUES_LOCALLY`] of the executor.
    #[doc(hidden)]
    #[inline]
    pub fn queues_at_home(&self) -> bool {
        self.table.queues_locally
    }

    /// Queues the work through a clone of the handle. For callers whose own handle may be freed by the work:
    /// another thread may run it to its end while `post` is still executing. Catches a panic of the
    /// executor's `clone` or `post`, and writes it to standard error; if the executor has dropped the work by
    /// then, the work has completed as stopped.
    ///
    /// # Safety
    /// The handle exists until the work is run or dropped. It is passed as a pointer, because a reference
    /// would have to be valid until this returns.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn post_cloned(this: NonNull<Self>, runnable: Runnable) {
        // SAFETY: the handle exists, as the runnable is still ours. Rule 1: the table fits the word.
        unsafe { (this.as_ref().table.post_cloned)(&raw const (*this.as_ptr()).word, runnable) }
    }

    /// Dispatches the work through a clone of the handle, as [`post_cloned`](ExecutorRef::post_cloned) posts
    /// it.
    ///
    /// # Safety
    /// As for [`post_cloned`](ExecutorRef::post_cloned).
    #[doc(hidden)]
    #[inline]
    pub unsafe fn dispatch_cloned(this: NonNull<Self>, runnable: Runnable) -> Option<Runnable> {
        // SAFETY: the handle exists, as the runnable is still ours. Rule 1: the table fits the word.
        unsafe { (this.as_ref().table.dispatch_cloned)(&raw const (*this.as_ptr()).word, runnable) }
    }

    /// Returns the executor, if it is an `E`.
    pub fn downcast_ref<E: Executor>(&self) -> Option<&E> {
        // SAFETY: rule 1: the table fits the word.
        unsafe { (self.table.get)(&self.word) }.downcast_ref()
    }
}

#[diagnostic::do_not_recommend]
impl Executor for ExecutorRef {
    #[inline]
    fn post(&self, runnable: Runnable) {
        // SAFETY: rule 1: the table fits the word.
        unsafe { (self.table.post)(&self.word, runnable) }
    }

    #[inline]
    fn post_last(self, runnable: Runnable) {
        let this = ManuallyDrop::new(self);
        // SAFETY: rule 1: the table fits the word. `this` is not dropped, so the word is moved out once.
        unsafe { (this.table.post_last)((&raw const this.word).read(), runnable) }
    }

    #[inline]
    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        // SAFETY: rule 1: the table fits the word.
        unsafe { (self.table.dispatch)(&self.word, runnable) }
    }

    fn parallelism(&self) -> usize {
        // SAFETY: rule 1: the table fits the word.
        unsafe { (self.table.parallelism)(&self.word) }
    }

    #[inline]
    fn owner_thread(&self) -> Option<&OwnerThread> {
        // SAFETY: rule 1: the table fits the word.
        unsafe { (self.table.owner_thread)(&self.word) }
    }

    #[inline]
    fn timers(&self) -> Option<&dyn Timers> {
        // SAFETY: rule 1: the table fits the word.
        unsafe { (self.table.timers)(&self.word) }
    }

    fn context(&self) -> Option<&(dyn Any + Send + Sync)> {
        // SAFETY: rule 1: the table fits the word.
        unsafe { (self.table.context)(&self.word) }
    }

    fn work_began(&self) {
        // SAFETY: rule 1: the table fits the word.
        unsafe { (self.table.work_began)(&self.word) }
    }

    fn work_ended(&self) {
        // SAFETY: rule 1: the table fits the word.
        unsafe { (self.table.work_ended)(&self.word) }
    }
}

impl Clone for ExecutorRef {
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: rule 1: the table fits the word.
        unsafe { (self.table.clone)(&self.word) }
    }
}

impl Drop for ExecutorRef {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: rule 1: the table fits the word, which is not used after `drop`.
        unsafe { (self.table.drop)(&mut self.word) }
    }
}

impl PartialEq for ExecutorRef {
    fn eq(&self, other: &Self) -> bool {
        // SAFETY: rule 1: each table fits its word.
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

/// The functions for a word that owns an `E`: rule 2. All of them require that the word was made by `put`.
struct Stored<E>(core::marker::PhantomData<E>);

impl<E: Executor> Stored<E> {
    const FITS: bool = size_of::<E>() <= size_of::<Word>() && align_of::<E>() <= align_of::<Word>();

    const TABLE: &'static Table = &Table {
        post: |word, runnable| Self::get(word).post(runnable),
        post_last: Self::post_last,
        post_cloned: Self::post_cloned,
        dispatch_cloned: Self::dispatch_cloned,
        dispatch: |word, runnable| Self::get(word).dispatch(runnable),
        parallelism: |word| Self::get(word).parallelism(),
        owner_thread: |word| Self::get(word).owner_thread(),
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
        queues_locally: E::QUEUES_LOCALLY,
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
        // SAFETY: rule 2: `FITS` says that an `E` fits into the word by size and by alignment.
        unsafe { word.as_mut_ptr().cast::<E>().write(executor) };
        ExecutorRef { word: Word(UnsafeCell::new(word)), table: Self::TABLE }
    }

    #[inline]
    fn get(word: &Word) -> &E {
        // SAFETY: rule 2: `put` has stored an `E` in the word or an `Arc` of one, by the same constant.
        unsafe { if Self::FITS { &*word.0.get().cast::<E>() } else { &*word.pointer().cast::<E>() } }
    }

    #[inline]
    fn duplicate(word: &Word) -> ExecutorRef {
        if Self::FITS {
            return Self::put(Self::get(word).clone());
        }
        // SAFETY: rule 2: it does not fit, so that `put` has made the word by `Word::new`.
        let executor = unsafe { word.pointer() };
        // SAFETY: rule 2: the pointer came from `Arc::into_raw`, and the count that the word owns keeps it
        // alive.
        unsafe { Arc::increment_strong_count(executor.cast::<E>()) };
        ExecutorRef { word: Word::new(executor), table: Self::TABLE }
    }

    #[inline]
    fn lend(word: &Word) -> ExecutorRef {
        if Self::FITS {
            let executor = core::ptr::from_ref(Self::get(word));
            return ExecutorRef { word: Word::new(executor.cast()), table: Borrowed::<E>::TABLE };
        }
        // The stored pointer, and not one made from a reference to the executor: a clone of the result writes the counts beside it.
        // SAFETY: the executor does not fit, and so the word holds the pointer that `Arc::into_raw` returned.
        ExecutorRef { word: Word::new(unsafe { word.pointer() }), table: Self::TABLE }
    }

    fn post_last(word: Word, runnable: Runnable) {
        if Self::FITS {
            // SAFETY: rule 2: `put` has stored an `E` in the word, by the same constant. The word is
            // consumed, so it is read once.
            return unsafe { word.0.get().cast::<E>().read() }.post_last(runnable);
        }
        // Dropped also when `post` panics.
        let executor = ExecutorRef { word, table: Self::TABLE };
        Self::get(&executor.word).post(runnable);
    }

    /// Posts through a clone of the executor.
    ///
    /// # Safety
    /// As for [`ExecutorRef::post_cloned`].
    unsafe fn post_cloned(word: *const Word, runnable: Runnable) {
        contain::<E, _>(move || {
            // SAFETY: the word exists until the work is run or dropped, and `post_last` gets the runnable
            // after the clone is made.
            let word = || unsafe { &*word };
            if Self::FITS {
                Self::get(word()).clone().post_last(runnable);
            } else {
                Self::duplicate(word()).post_last(runnable);
            }
        });
    }

    /// Dispatches through a clone of the executor.
    ///
    /// # Safety
    /// As for [`ExecutorRef::dispatch_cloned`].
    unsafe fn dispatch_cloned(word: *const Word, runnable: Runnable) -> Option<Runnable> {
        // SAFETY: the word exists until the work is run or dropped, and `dispatch` gets the runnable after
        // the clone is made.
        contain::<E, _>(move || unsafe { Self::duplicate(&*word) }.dispatch(runnable)).flatten()
    }

    #[inline]
    fn discard(word: &mut Word) {
        // SAFETY: rule 2: `put` has stored an `E` in the word or an `Arc` of one, by the same constant.
        // Called once, by `drop`.
        unsafe {
            if Self::FITS {
                word.0.get().cast::<E>().drop_in_place();
            } else {
                drop(Arc::from_raw(word.pointer().cast::<E>()));
            }
        }
    }
}

/// The functions for a word that is the address of an `E`: rule 3. All of them require that the word was made
/// by [`Stored::lend`], and that the executor still exists.
struct Borrowed<E>(core::marker::PhantomData<E>);

impl<E: Executor> Borrowed<E> {
    const TABLE: &'static Table = &Table {
        post: |word, runnable| Self::get(word).post(runnable),
        post_last: |word, runnable| Self::get(&word).post(runnable),
        post_cloned: |word, runnable| {
            // SAFETY: the word exists until the work is run or dropped, and `post_last` gets the runnable
            // after the clone is made.
            contain::<E, _>(move || unsafe { Self::get(&*word) }.clone().post_last(runnable));
        },
        dispatch_cloned: |word, runnable| {
            // SAFETY: the word exists until the work is run or dropped, and `dispatch` gets the runnable
            // after the clone is made.
            contain::<E, _>(move || unsafe { Self::get(&*word) }.clone().dispatch(runnable)).flatten()
        },
        dispatch: |word, runnable| Self::get(word).dispatch(runnable),
        parallelism: |word| Self::get(word).parallelism(),
        owner_thread: |word| Self::get(word).owner_thread(),
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
        queues_locally: E::QUEUES_LOCALLY,
    };

    #[inline]
    fn get(word: &Word) -> &E {
        // SAFETY: rule 3: `Stored::lend` has made the word from a reference to an `E` that still exists.
        unsafe { &*word.pointer().cast::<E>() }
    }

    fn duplicate(word: &Word) -> ExecutorRef {
        Stored::put(Self::get(word).clone())
    }

    fn lend(word: &Word) -> ExecutorRef {
        // SAFETY: rule 3: `Stored::lend` has made the word by `Word::new`.
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
            // SAFETY: `lent` stays in its variable, which is declared before this one and so goes after it.
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
