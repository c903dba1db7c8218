//! An executor of any type in two words: one for the handle, one for the table of its functions.
//!
//! 1. `table` is that of the [`Hold`] whose value is in `word`: only `ExecutorRef::holding` pairs the two. Entries of a
//!    table take a word of its hold, and are called with the word beside the table.
//! 2. The word owns that value. A hold fits into a word by size and by alignment: `into_word` checks it.
//! 3. A [`Lent`] is the address of an executor that outlives it: `ExecutorRef::lend` requires that.
//! 4. A [`WordRef`] is passed on with the work that it is made for, and cloned before that work is given away. The
//!    word exists until then: `ExecutorRef::post_cloned` and `dispatch_cloned`, which make it, require that.

#![allow(unsafe_code)]

use core::any::{Any, type_name};
use core::cell::UnsafeCell;
use core::fmt;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::NonNull;
use std::sync::Arc;

use super::any::AnyExecutor;
use super::contained::call_contained;
use super::{Executor, InlineExecutor, OwnerThread, Runnable, Timers};
use crate::FrameAllocator;

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

/// The value of a [`Hold`]. In a cell, because an executor may have cells of its own.
struct Word(UnsafeCell<MaybeUninit<*const ()>>);

/// The address of the word of a handle that exists until the work beside it is run or dropped: rule 4. It is no
/// reference, which would have to be valid for as long as the function that has it.
struct WordRef(*const Word);

/// The functions of a hold. Those that are called for each piece of work have an entry of their own; the rest
/// goes through `executor`, which costs a second call through a pointer.
struct Table {
    post: fn(&Word, Runnable),
    post_last: fn(Word, Runnable),
    post_cloned: fn(WordRef, Runnable),
    dispatch: fn(&Word, Runnable) -> Option<Runnable>,
    dispatch_cloned: fn(WordRef, Runnable) -> Option<Runnable>,
    owner_thread: fn(&Word) -> Option<&OwnerThread>,
    clone: fn(&Word) -> ExecutorRef,
    lend: fn(&Word) -> ExecutorRef,
    drop: fn(Word),
    executor: fn(&Word) -> &dyn AnyExecutor,
    type_name: fn() -> &'static str,
    queues_locally: bool,
}

// SAFETY: an executor is `Send` and `Sync`, and the word holds one, an `Arc` of one, or the address of one:
// the three kinds of `Hold`.
unsafe impl Send for ExecutorRef {}
// SAFETY: an executor is `Send` and `Sync`, and a shared word gives out only shared references to it.
unsafe impl Sync for ExecutorRef {}

// Like every other handle. An executor is responsible for its own state after a panic.
impl std::panic::RefUnwindSafe for ExecutorRef {}

impl ExecutorRef {
    /// Erases the type of `executor`. Returns it as it is if it is erased already.
    #[inline]
    pub fn new<E: Executor>(executor: E) -> Self {
        executor.erased()
    }

    /// Erases the type of a handle, for [`Executor::erased`]. Use [`new`](ExecutorRef::new), which does not erase a
    /// handle twice.
    // Out of line, so that it lies in one codegen unit with the functions of the table, which name the table too.
    // Inlined, it would give another unit a table of its own.
    #[doc(hidden)]
    #[inline(never)]
    pub fn erase<E: Executor>(executor: E) -> Self {
        if Inline::<E>::FITS {
            Self::holding(Inline(executor))
        } else {
            Self::holding(Counted(Arc::new(executor)))
        }
    }

    /// Puts a hold into the word, with its table.
    #[inline]
    fn holding<H: Hold>(hold: H) -> Self {
        Self { word: hold.into_word(), table: H::TABLE }
    }

    /// Returns the executor as an object, for the functions that have no entry in the table.
    fn executor(&self) -> &dyn AnyExecutor {
        (self.table.executor)(&self.word)
    }

    /// Lends the executor without counting a reference. Copies nothing that the executor might change: an
    /// executor that is stored inline is lent by its address.
    ///
    /// # Safety
    /// `self` outlives the result, and does not move meanwhile.
    #[inline]
    pub(crate) unsafe fn lend(&self) -> ManuallyDrop<Self> {
        // Rule 3: `ScopedEnv`, which calls this, keeps the result beside a parent that it requires to outlive it.
        ManuallyDrop::new((self.table.lend)(&self.word))
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
    pub fn queues_locally(&self) -> bool {
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
    // Catches the panic here and not in the entries of the tables: one instance for all types of executors.
    #[doc(hidden)]
    pub unsafe fn post_cloned(this: NonNull<Self>, runnable: Runnable) {
        // SAFETY: the handle exists, as the runnable is still ours. Rule 4: the word exists until the work is run or
        // dropped, as this function requires.
        let (table, word) = unsafe { (this.as_ref().table, WordRef(&raw const (*this.as_ptr()).word)) };
        call_contained(table.type_name, move || (table.post_cloned)(word, runnable));
    }

    /// Dispatches the work through a clone of the handle, as [`post_cloned`](ExecutorRef::post_cloned) posts
    /// it.
    ///
    /// # Safety
    /// As for [`post_cloned`](ExecutorRef::post_cloned).
    #[doc(hidden)]
    pub unsafe fn dispatch_cloned(this: NonNull<Self>, runnable: Runnable) -> Option<Runnable> {
        // SAFETY: the handle exists, as the runnable is still ours. Rule 4: the word exists until the work is run or
        // dropped, as this function requires.
        let (table, word) = unsafe { (this.as_ref().table, WordRef(&raw const (*this.as_ptr()).word)) };
        call_contained(table.type_name, move || (table.dispatch_cloned)(word, runnable)).flatten()
    }

    /// Returns the executor, if it is an `E`.
    pub fn downcast_ref<E: Executor>(&self) -> Option<&E> {
        self.executor().as_any().downcast_ref()
    }
}

#[diagnostic::do_not_recommend]
impl Executor for ExecutorRef {
    #[inline]
    fn erased(self) -> Self {
        self
    }

    #[inline]
    fn post(&self, runnable: Runnable) {
        (self.table.post)(&self.word, runnable)
    }

    #[inline]
    fn post_last(self, runnable: Runnable) {
        let mut this = ManuallyDrop::new(self);
        // Rule 2: the value moves out once, as `this` is not dropped.
        let word = Word(UnsafeCell::new(*this.word.0.get_mut()));
        (this.table.post_last)(word, runnable);
    }

    #[inline]
    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        (self.table.dispatch)(&self.word, runnable)
    }

    fn parallelism(&self) -> usize {
        self.executor().parallelism()
    }

    #[inline]
    fn owner_thread(&self) -> Option<&OwnerThread> {
        (self.table.owner_thread)(&self.word)
    }

    fn timers(&self) -> Option<&dyn Timers> {
        self.executor().timers()
    }

    fn context(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.executor().context()
    }

    fn allocator(&self) -> FrameAllocator {
        self.executor().allocator()
    }

    fn work_began(&self) {
        self.executor().work_began();
    }

    fn work_ended(&self) {
        self.executor().work_ended();
    }
}

impl Clone for ExecutorRef {
    #[inline]
    fn clone(&self) -> Self {
        (self.table.clone)(&self.word)
    }
}

impl Drop for ExecutorRef {
    #[inline]
    fn drop(&mut self) {
        let word = Word(UnsafeCell::new(*self.word.0.get_mut()));
        // Rule 2: the value moves out once, as `drop` is the last use of `self.word`.
        (self.table.drop)(word);
    }
}

impl PartialEq for ExecutorRef {
    fn eq(&self, other: &Self) -> bool {
        self.executor().is_equal(other.executor().as_any())
    }
}

impl Default for ExecutorRef {
    fn default() -> Self {
        Self::new(InlineExecutor)
    }
}

impl fmt::Debug for ExecutorRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExecutorRef({})", self.executor().type_name())
    }
}

/// A handle to an executor that fits into a word: [`Inline`], [`Counted`] or [`Lent`]. The functions that take
/// a [`Word`] are called by the entries of `TABLE` alone, and so with a word of this type: rule 1.
trait Hold: Sized + 'static {
    type Executor: Executor;
    /// A handle with a life of its own.
    type Owned: Hold;

    const TABLE: &'static Table = &Table {
        post: |word, runnable| Self::borrow(word).executor().post(runnable),
        post_last: |word, runnable| Self::take(word).post_last(runnable),
        post_cloned: |word, runnable| Self::cloned(word).post_last(runnable),
        dispatch: |word, runnable| Self::borrow(word).executor().dispatch(runnable),
        dispatch_cloned: |word, runnable| Self::cloned(word).executor().dispatch(runnable),
        owner_thread: |word| Self::borrow(word).executor().owner_thread(),
        clone: |word| ExecutorRef::holding(Self::borrow(word).to_owned()),
        lend: |word| Self::borrow(word).lend(),
        drop: |word| {
            // Contained: the last handle may be dropped by a task that has ended, and its waiter must be told.
            call_contained(type_name::<Self::Executor>, || drop(Self::take(word)));
        },
        executor: |word| Self::borrow(word).executor(),
        type_name: type_name::<Self::Executor>,
        queues_locally: Self::Executor::QUEUES_LOCALLY,
    };

    fn executor(&self) -> &Self::Executor;

    fn to_owned(&self) -> Self::Owned;

    /// Returns the address of this handle, or another one that can be used for as long.
    fn lend(&self) -> ExecutorRef;

    /// Queues work through a handle that is not needed any more.
    fn post_last(self, runnable: Runnable);

    /// Moves the handle into a word.
    #[inline]
    fn into_word(self) -> Word {
        // Constant, but not checked at compile time: `new` has a branch for each size.
        assert!(Inline::<Self>::FITS, "an executor that is too large is counted");
        let mut word = MaybeUninit::<*const ()>::uninit();
        // SAFETY: rule 2: the handle fits into the word, as the assertion says.
        unsafe { word.as_mut_ptr().cast::<Self>().write(self) };
        Word(UnsafeCell::new(word))
    }

    #[inline]
    fn borrow(word: &Word) -> &Self {
        // SAFETY: rule 1: `into_word` of this type has made the word. Rule 2: the word still owns the handle.
        unsafe { &*word.0.get().cast::<Self>() }
    }

    #[inline]
    fn take(word: Word) -> Self {
        // SAFETY: rule 1: `into_word` of this type has made the word. Rule 2: the word is consumed, so that
        // the handle is moved out once.
        unsafe { word.0.get().cast::<Self>().read() }
    }

    /// Clones the handle that the word belongs to.
    fn cloned(word: WordRef) -> Self::Owned {
        // SAFETY: rule 4: the entries of the table that call this give the work away afterwards.
        Self::borrow(unsafe { &*word.0 }).to_owned()
    }
}

/// An executor that fits into a word itself.
struct Inline<E>(E);

impl<E> Inline<E> {
    /// True if an `E` fits into a word, by size and by alignment.
    const FITS: bool = size_of::<E>() <= size_of::<Word>() && align_of::<E>() <= align_of::<Word>();
}

/// An executor that does not fit.
struct Counted<E>(Arc<E>);

/// The address of a handle in the word of another `ExecutorRef`, which outlives it: rule 3.
struct Lent<H>(NonNull<H>);

impl<E: Executor> Hold for Counted<E> {
    type Executor = E;
    type Owned = Self;

    fn executor(&self) -> &E {
        &self.0
    }

    fn to_owned(&self) -> Self {
        Self(self.0.clone())
    }

    fn lend(&self) -> ExecutorRef {
        ExecutorRef::holding(Lent(NonNull::from(self)))
    }

    fn post_last(self, runnable: Runnable) {
        self.0.post(runnable);
    }
}

impl<E: Executor> Hold for Inline<E> {
    type Executor = E;
    type Owned = Self;

    #[inline]
    fn executor(&self) -> &E {
        &self.0
    }

    #[inline]
    fn to_owned(&self) -> Self {
        Self(self.0.clone())
    }

    fn lend(&self) -> ExecutorRef {
        ExecutorRef::holding(Lent(NonNull::from(self)))
    }

    #[inline]
    fn post_last(self, runnable: Runnable) {
        self.0.post_last(runnable);
    }
}

impl<H: Hold> Hold for Lent<H> {
    type Executor = H::Executor;
    type Owned = H::Owned;

    #[inline]
    fn executor(&self) -> &H::Executor {
        self.original().executor()
    }

    fn to_owned(&self) -> H::Owned {
        self.original().to_owned()
    }

    fn lend(&self) -> ExecutorRef {
        ExecutorRef::holding(Self(self.0))
    }

    fn post_last(self, runnable: Runnable) {
        self.executor().post(runnable);
    }
}

impl<H> Lent<H> {
    #[inline]
    fn original(&self) -> &H {
        // SAFETY: rule 3: the handle that was lent still exists, at the same place.
        unsafe { self.0.as_ref() }
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
            // SAFETY: rule 3: `erased` does not move, and is dropped after what was lent.
            let lent = unsafe { erased.lend() };
            // SAFETY: rule 3: `lent` does not move, and is dropped after what was lent again.
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
