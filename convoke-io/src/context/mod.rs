//! I/O contexts: one thread, one driver, one queue of work. Tasks on it need not be `Send`.
//!
//! A context is a `RunLoop` whose sleeper is the driver. The thread that created the context alternates
//! between queued work and [`Driver::wait`]. Every other thread only posts work (which calls
//! [`Driver::wake`]) or uses sockets. `IoShared` is what all of them share: it is the sleeper of the loop,
//! and tasks find their driver through it.
//!
//! | module | contents |
//! | --- | --- |
//! | `bounded` | runs that end after a number of items or at a time |
//! | `as_future` | the context as a future of a foreign executor |
//! | `executor` | `IoExecutor`, the handle to post work with |
//! | `contexts` | the contexts of a runtime, as its tasks find them |
//! | `current` | the driver and the services of the current task |
//! | `shared` | `IoShared`, the state behind all handles |
//! | `work` | `Work`, which keeps `run` from returning |

mod as_future;
mod bounded;
mod contexts;
mod current;
mod executor;
mod shared;
mod work;

pub use as_future::IoFuture;
pub use contexts::{CONTEXTS, Contexts};
#[doc(hidden)]
pub use current::driver_of_executor;
pub use current::{IO, current_driver, driver_of, services_of, time_of_day, use_service, with_services};
pub use executor::IoExecutor;
pub use shared::IoShared;
pub use work::Work;

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

use convoke_core::env::Changes;
use convoke_core::raw::{DropOutOfLine, LastUse, OutOfLine};
use convoke_core::{ExecutorRef, FrameAllocator, Outcome, Panic};
use convoke_exec::RunLoop;
use convoke_exec::raw::{Moment, Sleeper};
use convoke_task::BlockOn;
use convoke_task::Context;
use convoke_task::context::ExecutionContext;
use convoke_task::raw::{BoxedFuture, block_on_boxed};

use crate::driver::Driver;

/// An event loop on one thread: it runs work and waits for I/O in turn.
///
/// Sockets that its tasks create belong to its driver. Other threads may use them too, but only this loop
/// delivers their events: keep it running.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::net::{TcpListener, TcpStream};
///
/// let context = convoke::driver::io_context().unwrap();
/// let said = context.block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let address = listener.local_addr()?;
///     let connected = try_join((TcpStream::connect(address), listener.accept()));
///     let (client, (server, _)) = connected.await?;
///     client.write_all(b"hello").await?;
///     let mut said = [0; 5];
///     server.read_exact(&mut said).await?;
///     std::io::Result::Ok(said)
/// });
/// assert_eq!(&said.unwrap().unwrap(), b"hello");
/// ```
pub struct IoContext {
    run_loop: OutOfLine<RunLoop>,
    shared: Arc<IoShared>,
    /// The context stays on the thread that created it, since its tasks need not be `Send`.
    _not_send: PhantomData<*mut ()>,
}

impl IoContext {
    /// Creates a context for the current thread, over this driver.
    pub fn new(driver: Arc<dyn Driver>) -> Self {
        Self::with_allocator(driver, FrameAllocator::default())
    }

    /// Creates a context for the current thread, over this driver. All that is launched on it, or run by it, and
    /// names no frame allocator uses `allocator`.
    ///
    /// ```
    /// use convoke::alloc::{Bounded, FrameAllocator};
    /// use convoke::driver::{IoContext, driver};
    /// use convoke::env::current;
    ///
    /// let frames = FrameAllocator::new(Bounded::new(1 << 20));
    /// let context = IoContext::with_allocator(driver()?, frames.clone());
    /// let used = context.block_on(async { current::env(|env| env.unwrap().allocator().clone()) });
    /// assert_eq!(used.unwrap(), frames);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn with_allocator(driver: Arc<dyn Driver>, allocator: FrameAllocator) -> Self {
        let services = Context::new().with_allocator(allocator.clone());
        let shared = Arc::new(IoShared::with_services(driver, services));
        let run_loop = OutOfLine::new(RunLoop::over_with(shared.clone(), Some(shared.clone()), allocator));
        let context = Self { run_loop, shared, _not_send: PhantomData };
        context.shared.services.set_executor(ExecutorRef::new(context.executor()));
        context
    }

    /// Returns the handle that work is posted with.
    pub fn executor(&self) -> IoExecutor {
        IoExecutor::new(self.run_loop.executor())
    }

    /// Returns its driver.
    pub fn driver(&self) -> &Arc<dyn Driver> {
        &self.shared.driver
    }

    /// Returns its services. They close in order when the context is dropped: see
    /// [`close_services`](IoContext::close_services).
    pub fn services(&self) -> &Context {
        &self.shared.services
    }

    /// Closes all services and runs until they have ended. Services close in reverse order of creation: each
    /// is closed, which is awaited, and shut down. Then all are dropped. No service can be created from the
    /// beginning of this call on. Dropping the context does this too, before its driver shuts down, so
    /// sockets and timers still work while services close.
    ///
    /// - A service that takes longer than its [grace period](convoke_task::cleanup::GRACE) is stopped.
    ///   Failures are reported to the [hook](convoke_task::set_cleanup_hook), and the next service is closed.
    /// - *Runs on* the calling thread, with all other work of the context.
    pub fn close_services(&self) {
        let services = &self.shared.services;
        if !services.is_empty() {
            // Services do not panic here. The panic hook has reported panics of other work.
            let _ = Panic::catch(|| self.block_on_boxed(Changes::new(), Box::pin(services.close())));
        }
        let _ = Panic::catch(|| services.end());
    }

    /// Runs work on this thread until there is none left, or until [`stop`](IoContext::stop). Returns the
    /// number of work items that ran. It may be called again when there is new work.
    ///
    /// # What counts as work
    /// It does not return while there is any of this:
    ///
    /// - a chain that was [launched](convoke_task::launch()) here and has not ended, with everything that it
    ///   awaits and all its children. It does not matter what they wait for: a lookup, a signal, a channel
    ///   that another thread sends to, [blocking](convoke_task::blocking()) work, a task on a pool. Nothing
    ///   is detached, so the context waits for all of it;
    /// - queued work and pending timers;
    /// - operations in flight on sockets of the context, and tasks that wait for such a socket to be ready,
    ///   on any executor;
    /// - names that its `Resolver` looks up, for any task;
    /// - [`Work`].
    ///
    /// Services, sockets, `Signals` and other objects that merely exist are not work. Nor is anything that
    /// the context cannot see, because it was not launched here and waits for none of the above: a child
    /// whose scope is in a chain of another executor, a sender in a counting scope, a function that another
    /// thread is about to post. Hold a [`Work`] for those.
    ///
    /// So a chain that waits for an event after the return of `run` deadlocks, like a thread that joins
    /// itself. Use [`block_on`](IoContext::block_on), [`poll`](IoContext::poll) or
    /// [`stop`](IoContext::stop) in such programs.
    ///
    /// ```
    /// use convoke::prelude::*;
    ///
    /// let context = convoke::driver::io_context().unwrap();
    /// let (sender, mut receiver) = convoke::sync::oneshot::channel();
    /// let chain = async move { receiver.recv().await.unwrap() + 1 };
    /// let answer = launch(&context.executor()).start(chain);
    /// let elsewhere = std::thread::spawn(move || sender.send(41));
    /// context.run(); // Nothing is queued, but the chain has not ended.
    /// assert_eq!(answer.wait(), Outcome::Value(42));
    /// elsewhere.join().unwrap().unwrap();
    /// ```
    ///
    /// # Panics
    /// If a work item panics (tasks catch their panics). The rest stays queued.
    #[track_caller]
    pub fn run(&self) -> usize {
        self.run_bounded(usize::MAX, None)
    }

    /// Runs until one work item has run, or until there is [no work left](IoContext::run). Returns true if
    /// one has run.
    ///
    /// # Panics
    /// As [`run`](IoContext::run).
    #[track_caller]
    pub fn run_one(&self) -> bool {
        self.run_bounded(1, None) == 1
    }

    /// Runs on this thread until the future has ended. The future is a chain of its own on this context, and
    /// need be neither `Send` nor `'static`. Other work of the context runs meanwhile, and stays queued
    /// afterwards.
    ///
    /// - *Completes with* the value of the future, or stopped. It is never `Panicked`.
    /// - *Runs on* the calling thread.
    /// - *Panics* if the future panics, or other work: after the future has ended.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> Outcome<F::Output> {
        self.block_on_with(Changes::new(), future)
    }

    /// Runs on this thread until the future has ended, in a changed environment: with a stop token, locals, a
    /// frame allocator.
    ///
    /// # Panics
    /// As [`block_on`](IoContext::block_on).
    #[track_caller]
    pub fn block_on_with<F: Future>(&self, changes: Changes, future: F) -> Outcome<F::Output> {
        self.run_loop.rouse();
        let _stops_end_here = ForgetStops(&self.shared);
        self.run_loop.block_on_with(changes, future)
    }

    /// Runs a future without a type until it has ended: its task is compiled with this crate, and not again with
    /// every future. Otherwise like [`block_on_with`](IoContext::block_on_with).
    #[doc(hidden)]
    #[track_caller]
    pub fn block_on_boxed(&self, changes: Changes, future: BoxedFuture<'_>) -> Outcome<()> {
        self.run_loop.rouse();
        let _stops_end_here = ForgetStops(&self.shared);
        block_on_boxed(Some(&self.run_loop), changes, future)
    }

    /// Runs the work that is ready and polls the driver, without waiting: for a context inside a foreign
    /// event loop. Call it again when its [descriptor](IoContext::descriptor) is readable, or at the returned
    /// time. Use [`turn`](IoContext::turn) if the work must not keep the foreign event loop waiting for long.
    ///
    /// # Panics
    /// As [`run`](IoContext::run).
    pub fn poll(&self) -> Option<Instant> {
        let _stops_end_here = ForgetStops(&self.shared);
        self.run_loop.turn_with(usize::MAX, || self.shared.check()).next_timer
    }

    /// Returns a descriptor that becomes readable when [`poll`](IoContext::poll) has work to do, if the
    /// driver has one.
    #[cfg(unix)]
    pub fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.shared.driver.descriptor()
    }

    /// Makes [`run`](IoContext::run) return soon, with work left.
    ///
    /// It ends one call that runs the context and may wait, such as `run`, [`run_one`](IoContext::run_one) or
    /// [`run_for`](IoContext::run_for), or its [future](IoContext::as_future): the one that is running, or else
    /// the next, since a stop from another thread may come a moment before the call. It is not left over for a
    /// later one: several stops during one call are one, and a stop during
    /// [`block_on`](IoContext::block_on), [`poll`](IoContext::poll), [`turn`](IoContext::turn) or
    /// [`run_ready`](IoContext::run_ready), which do not end by it, has no effect.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Announces work that will come from outside: [`run`](IoContext::run) does not return for lack of work
    /// while the returned value exists.
    pub fn work(&self) -> Work {
        Work::new(self.executor())
    }

    /// Runs until there is no work left, until [`stop`](IoContext::stop), until `most` work items have run, or until the
    /// clock reaches `until`. Returns the number of items that ran.
    #[track_caller]
    fn run_bounded(&self, most: usize, until: Option<Instant>) -> usize {
        self.run_loop.rouse();
        let _stops_end_here = ForgetStops(&self.shared);
        let mut ran = 0;
        let goes_on = |moment| match moment {
            Moment::Next => {
                let goes_on = ran < most && !self.shared.is_stopped();
                ran += usize::from(goes_on);
                goes_on
            }
            // `Next` was counted, but there was no item to run.
            Moment::Idle => {
                ran -= 1;
                !self.shared.is_stopped() && !self.is_dry()
            }
        };
        match until {
            Some(until) => self.run_loop.run_while_until(until, goes_on),
            None => self.run_loop.run_while(goes_on),
        }
        ran
    }

    /// Returns true if nothing can run any more, as far as the context knows.
    fn is_dry(&self) -> bool {
        // The loop is checked last: an operation that has just ended on another thread may have posted work.
        !self.run_loop.has_timers() && self.shared.driver.in_flight() == 0 && !self.run_loop.has_work()
    }
}

impl ExecutionContext for IoContext {
    type Executor = IoExecutor;

    fn executor(&self) -> IoExecutor {
        self.executor()
    }

    fn services(&self) -> &Context {
        self.services()
    }
}

/// Forgets the stops that came during a call that runs the context, also if work panics.
struct ForgetStops<'a>(&'a IoShared);

impl Drop for ForgetStops<'_> {
    fn drop(&mut self) {
        self.0.forget_stop();
    }
}

impl Drop for IoContext {
    fn drop(&mut self) {
        self.run_loop.rouse();
        self.close_services();
        // Tasks that wait for I/O are notified. The work that they post is stopped with the loop.
        // The panic hook has reported a panic of the driver; the loop ends anyway.
        let _ = Panic::catch(|| self.shared.driver.shut_down());
    }
}

impl DropOutOfLine for IoContext {
    #[inline(never)]
    fn drop_out_of_line(context: LastUse<'_, Self>) {
        context.drop_here();
    }
}

impl fmt::Debug for IoContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoContext")
            .field("in_flight", &self.shared.driver.in_flight())
            .finish_non_exhaustive()
    }
}
