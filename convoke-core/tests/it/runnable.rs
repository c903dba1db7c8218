//! Runnables, and the queue that is linked through them.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use convoke_core::raw::{Call, Header, RunQueue, Runnable, WorkKind};
use convoke_core::{Executor, InlineExecutor};

/// A piece of work that notes how it was called, and frees itself.
#[repr(C)]
struct Work {
    header: Header,
    name: u32,
    diary: Diary,
}

#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<(u32, Call)>>>);

impl Diary {
    fn work(&self, name: u32) -> Runnable {
        let work = Box::new(Work {
            header: Header::new(const { &WorkKind::new(Work::call) }),
            name,
            diary: self.clone(),
        });
        // SAFETY: the header is the first field (`repr(C)`) of a boxed `Work`, which exists until `call`
        // frees it.
        unsafe { Runnable::new(NonNull::from(Box::leak(work)).cast()) }
    }

    fn queue(&self, names: impl IntoIterator<Item = u32>) -> RunQueue {
        let mut queue = RunQueue::new();
        names.into_iter().for_each(|name| queue.push(self.work(name)));
        queue
    }

    #[track_caller]
    fn assert(&self, expected: &[(u32, Call)]) {
        assert_eq!(*self.0.lock().unwrap(), expected);
        assert_eq!(Arc::strong_count(&self.0), 1, "all work was freed");
    }
}

impl Work {
    /// Notes the call and frees the work.
    ///
    /// # Safety
    /// Called once, with the header of a boxed `Work`.
    unsafe fn call(header: NonNull<Header>, call: Call) {
        // SAFETY: the header is the first field (`repr(C)`) of a boxed `Work`, and this is the only call for
        // it.
        let work = unsafe { Box::from_raw(header.cast::<Self>().as_ptr()) };
        work.diary.0.lock().unwrap().push((work.name, call));
    }
}

fn run_all(queue: &mut RunQueue) {
    while let Some(runnable) = queue.pop() {
        runnable.run();
    }
}

#[test]
fn a_runnable_is_one_pointer() {
    assert_eq!(size_of::<Runnable>(), size_of::<usize>());
    assert_eq!(size_of::<Option<Runnable>>(), size_of::<usize>());
}

#[test]
fn running_it_runs_it_and_dropping_it_stops_it() {
    let diary = Diary::default();
    diary.work(1).run();
    drop(diary.work(2));
    diary.assert(&[(1, Call::Run), (2, Call::Stop)]);
}

#[test]
fn a_runnable_is_converted_to_an_address_and_back() {
    let diary = Diary::default();
    let raw = diary.work(1).into_raw();
    // SAFETY: it came from `into_raw`, and there is no other runnable for it.
    unsafe { Runnable::from_raw(raw) }.run();
    diary.assert(&[(1, Call::Run)]);
}

#[test]
fn a_queue_is_first_in_first_out() {
    let diary = Diary::default();
    let mut queue = diary.queue([1, 2]);
    assert_eq!((queue.len(), queue.is_empty()), (2, false));
    queue.pop().unwrap().run();
    queue.push(diary.work(3));
    run_all(&mut queue);
    assert_eq!((queue.len(), queue.is_empty()), (0, true));
    assert!(queue.pop().is_none());
    queue.push(diary.work(4));
    run_all(&mut queue);
    diary.assert(&[(1, Call::Run), (2, Call::Run), (3, Call::Run), (4, Call::Run)]);
}

#[test]
fn appending_preserves_the_order_and_empties_the_other_queue() {
    for (ours, theirs) in [(0, 0), (0, 2), (2, 0), (1, 1), (3, 2)] {
        let diary = Diary::default();
        let mut queue = diary.queue(0..ours);
        let mut other = diary.queue(ours..ours + theirs);
        queue.append(&mut other);
        assert_eq!((queue.len(), other.len(), other.is_empty()), ((ours + theirs) as usize, 0, true));
        queue.push(diary.work(ours + theirs));
        other.push(diary.work(100));
        run_all(&mut queue);
        run_all(&mut other);
        let expected: Vec<_> = (0..=ours + theirs).chain([100]).map(|name| (name, Call::Run)).collect();
        diary.assert(&expected);
    }
}

#[test]
fn a_chain_that_is_linked_newest_first_is_reversed() {
    for length in [0, 1, 2, 5] {
        let diary = Diary::default();
        let mut newest = std::ptr::null_mut();
        for name in 0..length {
            let work = diary.work(name);
            // SAFETY: `newest` is null or the address of a header.
            unsafe { work.set_link(newest) };
            newest = work.into_raw().as_ptr();
        }
        // SAFETY: all of them came from `into_raw`, and the queue takes them over.
        let mut queue = unsafe { RunQueue::from_newest_first(newest) };
        assert_eq!(queue.len(), length as usize);
        queue.push(diary.work(length));
        run_all(&mut queue);
        diary.assert(&(0..=length).map(|name| (name, Call::Run)).collect::<Vec<_>>());
    }
}

#[test]
fn dropping_a_queue_stops_the_remaining_work_in_order() {
    let diary = Diary::default();
    let mut queue = diary.queue([1, 2, 3]);
    queue.pop().unwrap().run();
    drop(queue);
    diary.assert(&[(1, Call::Run), (2, Call::Stop), (3, Call::Stop)]);
}

#[test]
fn a_queue_may_be_sent_to_another_thread() {
    let diary = Diary::default();
    let mut queue = diary.queue([1, 2]);
    std::thread::spawn(move || run_all(&mut queue)).join().unwrap();
    diary.assert(&[(1, Call::Run), (2, Call::Run)]);
}

/// Posts work to the inline executor when it is dropped.
struct PostsOnDrop(Diary, u32);

impl Drop for PostsOnDrop {
    fn drop(&mut self) {
        InlineExecutor.post(self.0.work(self.1));
    }
}

#[test]
fn thread_locals_may_post_to_the_inline_executor_when_they_are_dropped() {
    thread_local! {
        static BEFORE: Cell<Option<PostsOnDrop>> = const { Cell::new(None) };
        static AFTER: Cell<Option<PostsOnDrop>> = const { Cell::new(None) };
    }
    let diary = Diary::default();
    let ours = diary.clone();
    let thread = std::thread::spawn(move || {
        // One is used before the executor is, and one after: whichever is dropped first.
        BEFORE.set(Some(PostsOnDrop(ours.clone(), 2)));
        InlineExecutor.post(ours.work(1));
        AFTER.set(Some(PostsOnDrop(ours, 2)));
    });
    thread.join().unwrap();
    diary.assert(&[(1, Call::Run), (2, Call::Run), (2, Call::Run)]);
}
