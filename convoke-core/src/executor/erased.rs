//! Any executor, in two words: one for the handle, one for what can be done with it.

use core::any::{Any, TypeId, type_name};
use core::fmt;
use core::mem::{ManuallyDrop, MaybeUninit};
use std::sync::Arc;

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

/// The executor itself if it fits, else an `Arc` of it.
type Word = MaybeUninit<*const ()>;

struct Table {
    post: unsafe fn(&Word, Runnable),
    post_last: unsafe fn(Word, Runnable),
    dispatch: unsafe fn(&Word, Runnable) -> Option<Runnable>,
    parallelism: unsafe fn(&Word) -> usize,
    home: unsafe fn(&Word) -> Option<&Home>,
    timers: unsafe fn(&Word) -> Option<&dyn Timers>,
    context: unsafe fn(&Word) -> Option<&(dyn Any + Send + Sync)>,
    work_began: unsafe fn(&Word),
    work_ended: unsafe fn(&Word),
    clone: unsafe fn(&Word) -> Word,
    drop: unsafe fn(&mut Word),
    eq: unsafe fn(&Word, &Word) -> bool,
    get: unsafe fn(&Word) -> &dyn Any,
    type_id: fn() -> TypeId,
    type_name: fn() -> &'static str,
    queues_at_home: bool,
}

// SAFETY: an executor is `Send` and `Sync`, and the word holds nothing else.
unsafe impl Send for ExecutorRef {}
// SAFETY: as above.
unsafe impl Sync for ExecutorRef {}

impl ExecutorRef {
    /// Erases the type of `executor`. One that is erased already is returned as it is.
    #[inline]
    pub fn new<E: Executor>(executor: E) -> Self {
        let mut executor = Some(executor);
        if let Some(erased) = (&mut executor as &mut dyn Any).downcast_mut::<Option<Self>>() {
            return erased.take().expect("put there above");
        }
        let executor = executor.expect("put there above");
        Self { word: Kept::<E>::put(executor), table: Kept::<E>::TABLE }
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
        unsafe { (this.table.post_last)(this.word, runnable) }
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
        Self { word: unsafe { (self.table.clone)(&self.word) }, table: self.table }
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
        // SAFETY: both words hold the same type, so the table fits both.
        (self.table.type_id)() == (other.table.type_id)()
            && unsafe { (self.table.eq)(&self.word, &other.word) }
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
        dispatch: |word, runnable| Self::get(word).dispatch(runnable),
        parallelism: |word| Self::get(word).parallelism(),
        home: |word| Self::get(word).home(),
        timers: |word| Self::get(word).timers(),
        context: |word| Self::get(word).context(),
        work_began: |word| Self::get(word).work_began(),
        work_ended: |word| Self::get(word).work_ended(),
        clone: Self::duplicate,
        drop: Self::discard,
        eq: |a, b| Self::get(a) == Self::get(b),
        get: |word| Self::get(word),
        type_id: TypeId::of::<E>,
        type_name: type_name::<E>,
        queues_at_home: E::QUEUES_AT_HOME,
    };

    #[inline]
    fn put(executor: E) -> Word {
        let mut word = Word::uninit();
        if Self::FITS {
            // SAFETY: it fits, by size and by alignment.
            unsafe { word.as_mut_ptr().cast::<E>().write(executor) };
        } else {
            word.write(Arc::into_raw(Arc::new(executor)).cast());
        }
        word
    }

    #[inline]
    fn get(word: &Word) -> &E {
        // SAFETY: the word was made by `put`, which chose by the same constant.
        unsafe { if Self::FITS { &*word.as_ptr().cast::<E>() } else { &*word.assume_init().cast::<E>() } }
    }

    #[inline]
    fn duplicate(word: &Word) -> Word {
        if Self::FITS {
            return Self::put(Self::get(word).clone());
        }
        // SAFETY: the word holds what `Arc::into_raw` gave.
        unsafe { Arc::increment_strong_count(word.assume_init().cast::<E>()) };
        *word
    }

    fn post_last(word: Word, runnable: Runnable) {
        if Self::FITS {
            // SAFETY: the word was made by `put`, which chose by the same constant; the caller gives it up.
            return unsafe { word.as_ptr().cast::<E>().read() }.post_last(runnable);
        }
        // SAFETY: the word holds what `Arc::into_raw` gave; the caller gives it up. Taken back first: `post` may panic.
        unsafe { Arc::from_raw(word.assume_init().cast::<E>()) }.post(runnable);
    }

    #[inline]
    fn discard(word: &mut Word) {
        // SAFETY: the word was made by `put`, which chose by the same constant; the caller gives it up.
        unsafe {
            if Self::FITS {
                word.as_mut_ptr().cast::<E>().drop_in_place();
            } else {
                drop(Arc::from_raw(word.assume_init().cast::<E>()));
            }
        }
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

    #[test]
    fn it_is_the_executor_it_was_made_of_erased_or_not() {
        let (one, other) = (ByHand::new(), ByHand::new());
        let erased = ExecutorRef::new(one.clone());
        assert!(erased.is(&one) && erased.is(&erased.clone()));
        assert!(!erased.is(&other) && !erased.is(&InlineExecutor) && !erased.is(&ExecutorRef::new(other)));
    }
}
