//! I/O contexts whose runs are bounded, and contexts that a foreign executor drives: with its own wait for the descriptor
//! and its own timer.

#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use convoke::driver::io_context;
use convoke::prelude::*;
use convoke::task::forever;

#[test]
fn a_run_for_a_time_returns_with_work_left() {
    let context = io_context().unwrap();
    let launched = launch(&context.executor()).start(async { forever().await });
    let until = Instant::now() + Duration::from_millis(2);
    assert_eq!(context.run_until(until), 1);
    assert!(Instant::now() >= until && !launched.is_finished());
    assert!(!context.run_one_for(Duration::from_millis(1)), "there is nothing to run");
    launched.request_stop(StopReason::Requested);
    assert!(context.run_one_for(Duration::from_secs(3600)));
    context.run_for(Duration::from_secs(3600));
    assert!(launched.is_finished(), "it did not wait for an hour");
    assert_eq!(context.run_for(Duration::from_secs(3600)), 0, "there is no work left");
    assert_eq!(launched.wait(), Outcome::Stopped);
}

#[test]
fn a_stop_ends_one_timed_run_and_need_not_be_taken_back() {
    let context = io_context().unwrap();
    let work = context.work();
    assert!(!context.is_stopped());
    context.stop();
    assert!(context.is_stopped());
    assert_eq!(context.run_for(Duration::from_secs(3600)), 0);
    assert!(!context.is_stopped());
    drop(work);
}

#[test]
fn a_turn_of_a_context_is_bounded() {
    let context = io_context().unwrap();
    let launched = launch(&context.executor()).start(async {
        for _ in 0..20 {
            checkpoint().await;
        }
    });
    let mut ran = 0;
    loop {
        let turn = context.turn(8);
        ran += turn.ran;
        assert!(turn.ran <= 8);
        if !turn.has_more {
            break;
        }
    }
    assert_eq!((ran, launched.is_finished()), (21, true));
    let other = launch(&context.executor()).start(async { checkpoint().await });
    assert_eq!((context.run_ready_at_most(1), context.run_ready()), (1, 1));
    launched.wait().unwrap();
    other.wait().unwrap();
}

#[cfg(unix)]
mod by_a_foreign_executor {
    use std::cell::Cell;
    use std::future::{Future, poll_fn};
    use std::io;
    use std::os::fd::{AsRawFd, RawFd};
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Poll, Wake};
    use std::thread;
    use std::time::{Duration, Instant};

    use convoke::driver::{IoContext, io_context};
    use convoke::net::{TcpListener, TcpStream};
    use convoke::prelude::*;

    /// An executor of another crate, with one descriptor and one timer.
    struct Reactor {
        descriptor: RawFd,
        until: Cell<Option<Instant>>,
        polls: Cell<usize>,
    }

    struct Flag(AtomicBool);

    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }

    impl Reactor {
        fn of(context: &IoContext) -> Self {
            let descriptor = context.descriptor().expect("this driver has one").as_raw_fd();
            Self { descriptor, until: Cell::new(None), polls: Cell::new(0) }
        }

        /// Waits until the descriptor is readable, at most this number of milliseconds.
        fn wait(&self, most: i32) -> bool {
            let mut asked = libc::pollfd { fd: self.descriptor, events: libc::POLLIN, revents: 0 };
            // SAFETY: `asked` is one valid `pollfd`, and the context keeps its descriptor open.
            unsafe { libc::poll(&raw mut asked, 1, most) == 1 }
        }

        fn readable(&self) -> impl Future<Output = ()> {
            poll_fn(|_| if self.wait(0) { Poll::Ready(()) } else { Poll::Pending })
        }

        fn timer(&self, at: Instant) -> impl Future<Output = ()> {
            poll_fn(move |_| {
                if Instant::now() >= at {
                    return Poll::Ready(());
                }
                self.until.set(Some(at));
                Poll::Pending
            })
        }

        fn block_on<F: Future>(&self, future: F) -> F::Output {
            let flag = Arc::new(Flag(AtomicBool::new(false)));
            let (mut future, waker) = (pin!(future), flag.clone().into());
            loop {
                self.until.set(None);
                self.polls.set(self.polls.get() + 1);
                if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                    return output;
                }
                if !flag.0.swap(false, Ordering::AcqRel) {
                    let left = self.until.get().map(|at| at.saturating_duration_since(Instant::now()));
                    self.wait(left.map_or(-1, |left| left.as_micros().div_ceil(1000) as i32));
                }
            }
        }

        fn drive(&self, context: &IoContext) -> usize {
            self.block_on(context.as_future(|| self.readable()).timer(|at| self.timer(at)))
        }
    }

    #[test]
    fn a_context_runs_sockets_timers_and_posts_of_other_threads() {
        let context = io_context().unwrap();
        let reactor = Reactor::of(&context);
        let (executor, work) = (context.executor(), context.work());
        let elsewhere = thread::spawn(move || {
            let slept = launch(&executor).start(async { sleep(Duration::from_millis(2)).await });
            let outcome = slept.wait();
            drop(work);
            outcome
        });
        let talk = launch(&context.executor()).start(async {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let connected = try_join((TcpStream::connect(listener.local_addr()?), listener.accept()));
            let (client, (server, _)) = connected.await?;
            let mut said = [0; 5];
            try_join((client.write_all(b"hello"), server.read_exact(&mut said))).await?;
            io::Result::Ok(said)
        });
        let ran = reactor.drive(&context);
        assert!(ran > 3, "{ran} items");
        assert_eq!(&talk.wait().unwrap().unwrap(), b"hello");
        assert_eq!(elsewhere.join().unwrap(), Outcome::Value(()));
    }

    #[test]
    fn a_stop_from_another_thread_ends_the_future_with_work_left() {
        let context = io_context().unwrap();
        let (executor, work) = (context.executor(), context.work());
        let elsewhere = thread::spawn(move || executor.stop());
        assert_eq!(Reactor::of(&context).drive(&context), 0);
        elsewhere.join().unwrap();
        drop(work);
        assert_eq!(Reactor::of(&context).drive(&context), 0, "there is no work left, and no stop");
    }

    #[test]
    fn a_busy_context_lets_the_foreign_executor_run() {
        let context = io_context().unwrap();
        let reactor = Reactor::of(&context);
        let busy = launch(&context.executor()).start(async {
            for _ in 0..100 {
                checkpoint().await;
            }
        });
        let driven = context.as_future(|| reactor.readable()).pieces_per_poll(10);
        assert_eq!(reactor.block_on(driven), 101);
        assert!(reactor.polls.get() > 10);
        busy.wait().unwrap();
    }
}
