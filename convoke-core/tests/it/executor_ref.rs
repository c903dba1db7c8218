//! The erased executor: two words for a handle of any size.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use convoke_core::raw::{RunQueue, Runnable};
use convoke_core::{Executor, ExecutorRef, InlineExecutor};

/// A handle to a queue, `N` words larger than a pointer, that counts its clones.
struct Handle<const N: usize> {
    queue: Arc<Shared>,
    _ballast: [usize; N],
}

#[derive(Default)]
struct Shared {
    queued: Mutex<RunQueue>,
    handles: AtomicUsize,
}

impl<const N: usize> Handle<N> {
    fn new() -> Self {
        let queue = Arc::new(Shared::default());
        queue.handles.fetch_add(1, Ordering::Relaxed);
        Self { queue, _ballast: [N; N] }
    }

    fn handles(&self) -> usize {
        self.queue.handles.load(Ordering::Relaxed)
    }
}

impl<const N: usize> Clone for Handle<N> {
    fn clone(&self) -> Self {
        self.queue.handles.fetch_add(1, Ordering::Relaxed);
        Self { queue: self.queue.clone(), _ballast: self._ballast }
    }
}

impl<const N: usize> Drop for Handle<N> {
    fn drop(&mut self) {
        self.queue.handles.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<const N: usize> PartialEq for Handle<N> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.queue, &other.queue)
    }
}

impl<const N: usize> Executor for Handle<N> {
    fn post(&self, runnable: Runnable) {
        self.queue.queued.lock().unwrap().push(runnable);
    }

    fn parallelism(&self) -> usize {
        N + 7
    }
}

/// An executor that is aligned too strictly for a word, though not too large.
#[derive(Clone, Debug, PartialEq)]
#[repr(align(64))]
struct Aligned;

impl Executor for Aligned {
    fn post(&self, _: Runnable) {
        assert!(std::ptr::from_ref(self).is_aligned(), "an aligned executor stays aligned");
    }
}

#[test]
fn it_is_two_words_and_so_is_an_option_of_it() {
    assert_eq!(size_of::<ExecutorRef>(), 2 * size_of::<usize>());
    assert_eq!(size_of::<Option<ExecutorRef>>(), 2 * size_of::<usize>());
}

fn a_handle_is_stored_counted_and_compared<const N: usize>(clones_of_the_handle: usize) {
    let (handle, other) = (Handle::<N>::new(), Handle::<N>::new());
    let erased = ExecutorRef::new(handle.clone());
    assert_eq!(handle.handles(), 2);
    let copy = erased.clone();
    assert_eq!(handle.handles(), 2 + clones_of_the_handle);
    assert_eq!(erased, copy);
    assert_eq!(erased, ExecutorRef::new(handle.clone()));
    assert_ne!(erased, ExecutorRef::new(other));
    assert_ne!(erased, ExecutorRef::new(InlineExecutor), "an executor of another type is another executor");
    assert!(erased.downcast_ref::<Handle<N>>() == Some(&handle));
    assert!(erased.downcast_ref::<InlineExecutor>().is_none());
    assert_eq!(erased.parallelism(), N + 7);
    assert!(format!("{erased:?}").contains("Handle"));
    drop(erased);
    assert!(copy.downcast_ref::<Handle<N>>() == Some(&handle));
    drop(copy);
    assert_eq!(handle.handles(), 1, "every handle was dropped once");
}

#[test]
fn a_handle_that_fits_is_stored_inline() {
    a_handle_is_stored_counted_and_compared::<0>(1);
}

#[test]
fn a_larger_handle_is_stored_in_an_arc() {
    a_handle_is_stored_counted_and_compared::<1>(0);
    a_handle_is_stored_counted_and_compared::<100>(0);
}

#[test]
fn an_aligned_handle_stays_aligned() {
    let erased = ExecutorRef::new(Aligned);
    assert!(std::ptr::from_ref(erased.downcast_ref::<Aligned>().unwrap()).is_aligned());
    assert_eq!(erased, erased.clone());
}

#[test]
fn an_erased_executor_is_not_erased_twice() {
    let handle = Handle::<0>::new();
    let twice = ExecutorRef::new(ExecutorRef::new(handle.clone()));
    assert!(twice.downcast_ref() == Some(&handle));
    assert!(twice == ExecutorRef::new(handle.clone()));
    assert_eq!(twice.parallelism(), 7);
    drop(twice);
    assert_eq!(handle.handles(), 1);
}

#[test]
fn it_may_be_dropped_on_another_thread() {
    let handle = Handle::<2>::new();
    let erased = ExecutorRef::new(handle.clone());
    std::thread::spawn(move || drop(erased)).join().unwrap();
    assert_eq!(handle.handles(), 1);
}
