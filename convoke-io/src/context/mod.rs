//! `IoContext`: one thread, one driver, one queue. Tasks on it need not be `Send`.

mod executor;
mod here;
mod shared;
mod work;

pub use executor::IoExecutor;
#[doc(hidden)]
pub use here::driver_of_executor;
pub use here::{IO, current_driver, driver_of, services_of, use_service, with_services};
pub use shared::IoShared;
pub use work::Work;

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

use convoke_core::env::Changes;
use convoke_core::{ExecutorRef, Outcome, Panic};
use convoke_exec::RunLoop;
use convoke_exec::raw::{Moment, Sleeper};
use convoke_task::BlockOn;
use convoke_task::Context;

use crate::driver::Driver;

/// A thread's own loop that runs work and waits for I/O, by turns.
///
/// Sockets that are made by its tasks belong to its driver; they may be used from other threads too, and what waits for
/// them is told by this one: so somebody must run it.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::net::{TcpListener, TcpStream};
///
/// let context = convoke::driver::io_context().unwrap();
/// let said = context.run_until(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let address = listener.local_addr()?;
///     let (client, (server, _)) = try_join((TcpStream::connect(address), listener.accept())).await?;
///     client.write_all(b"hello").await?;
///     let mut said = [0; 5];
///     server.read_exact(&mut said).await?;
///     std::io::Result::Ok(said)
/// });
/// assert_eq!(&said.unwrap().unwrap(), b"hello");
/// ```
pub struct IoContext {
    run_loop: RunLoop,
    shared: Arc<IoShared>,
    /// Tasks that are not `Send` may live here: the context stays on the thread that made it.
    _not_send: PhantomData<*mut ()>,
}

impl IoContext {
    /// A context of the thread that makes it, over this driver.
    pub fn new(driver: Arc<dyn Driver>) -> Self {
        let shared = Arc::new(IoShared::new(driver));
        let run_loop = RunLoop::over(shared.clone(), Some(shared.clone()));
        let context = Self { run_loop, shared, _not_send: PhantomData };
        context.shared.services.set_executor(ExecutorRef::new(context.executor()));
        context
    }

    /// The handle through which work is posted.
    pub fn executor(&self) -> IoExecutor {
        IoExecutor::new(self.run_loop.executor())
    }

    /// Its driver.
    pub fn driver(&self) -> &Arc<dyn Driver> {
        &self.shared.driver
    }

    /// Its services. They end in order when it is dropped, as [`close_services`](IoContext::close_services) says.
    pub fn services(&self) -> &Context {
        &self.shared.services
    }

    /// Ends its services, and runs until they have ended: the last made first, each is closed, which is awaited, and shut down; then all
    /// are let go of. From when this begins no service is made. Dropping the context does the same, before its driver goes:
    /// what services close with, sockets and timers, is still there.
    ///
    /// - A service that takes longer than its [grace period](convoke_exec::cleanup::GRACE) is asked to stop; what goes wrong with
    ///   it is told to the [hook](convoke_exec::set_cleanup_hook), and the next one is closed.
    /// - *Runs on* the calling thread, with all other work of the context.
    pub fn close_services(&self) {
        let services = &self.shared.services;
        if !services.is_empty() {
            // Services do not panic here; other work that does has been reported by the panic hook.
            let _ = Panic::catch(|| self.run_until(services.close()));
        }
        let _ = Panic::catch(|| services.end());
    }

    /// Runs on this thread until there is nothing left to do, or until [`stop`](IoContext::stop). It may be called again when there
    /// is work again. Says how many pieces of work it has run.
    ///
    /// # What counts as work
    /// As long as there is any of this, it does not return:
    ///
    /// - a chain that was [launched](convoke_task::launch()) here and has not ended, with all that it awaits and all its children,
    ///   whatever they wait for: a lookup, a signal, a channel that another thread sends to, [blocking](convoke_exec::blocking())
    ///   work, a task on a pool. Nothing is detached, so what runs is waited for;
    /// - work that is queued, and timers that are set;
    /// - operations in flight on sockets of the context, and tasks that wait for one to be ready, wherever they run;
    /// - names that its [`Resolver`](crate::net::resolver::Resolver) looks up, whoever asked;
    /// - [`Work`].
    ///
    /// This is not work: services; sockets, [`Signals`](crate::signal::Signals) and other things that merely exist. Nor is what the
    /// context does not know of, because it came by another way than a launch here and waits for none of the above: a child whose
    /// scope is in a chain of another executor, a sender in a [counting scope](convoke_sender::CountingScope), a function that
    /// another thread is about to post. Hold a [`Work`] for those.
    ///
    /// So a chain that waits for what happens only after `run` has returned keeps it for ever: it deadlocks as a thread would that
    /// waits for itself. For such programs there are [`run_until`](IoContext::run_until), [`poll`](IoContext::poll) and
    /// [`stop`](IoContext::stop).
    ///
    /// ```
    /// use convoke::prelude::*;
    ///
    /// let context = convoke::driver::io_context().unwrap();
    /// let (sender, mut receiver) = convoke::sync::oneshot::channel();
    /// let answer = launch(&context.executor()).start(async move { receiver.recv().await.unwrap() + 1 });
    /// let elsewhere = std::thread::spawn(move || sender.send(41));
    /// context.run(); // There may be nothing queued, no timer, no I/O: but the chain has not ended.
    /// assert_eq!(answer.wait(), Outcome::Value(42));
    /// elsewhere.join().unwrap().unwrap();
    /// ```
    ///
    /// # Panics
    /// If a piece of work panics (tasks do not: they catch). The rest stays queued.
    pub fn run(&self) -> usize {
        self.run_loop.rouse();
        let mut ran = 0;
        self.run_loop.run_while(|moment| match moment {
            Moment::Next => {
                let goes_on = !self.shared.take_stop();
                ran += usize::from(goes_on);
                goes_on
            }
            // The one that was to be run was not there.
            Moment::Idle => {
                ran -= 1;
                !self.shared.take_stop() && !self.is_dry()
            }
        });
        ran
    }

    /// Runs until one piece of work has run, or there is [nothing left to do](IoContext::run). Says whether there
    /// was one.
    ///
    /// # Panics
    /// As [`run`](IoContext::run).
    pub fn run_one(&self) -> bool {
        self.run_loop.rouse();
        let mut asked = 0;
        let mut dry = false;
        self.run_loop.run_while(|moment| {
            match moment {
                Moment::Next => asked += 1,
                // The one that was asked for was not there.
                Moment::Idle => {
                    asked -= 1;
                    dry = self.is_dry();
                }
            }
            asked < 2 && !dry && !self.shared.take_stop()
        });
        asked == 2
    }

    /// Runs on this thread until the future has ended: a chain of its own, at home here. It need be neither `Send` nor
    /// `'static`. Other work of the context runs meanwhile, and stays queued afterwards.
    ///
    /// - *Completes with* what the future returns, or stopped. It is never `Panicked`.
    /// - *Runs on* the calling thread.
    /// - *Panics* if the future did, or other work: after the future has ended.
    #[track_caller]
    pub fn run_until<F: Future>(&self, future: F) -> Outcome<F::Output> {
        self.run_until_with(Changes::new(), future)
    }

    /// The same in a changed environment: with a stop token, locals, a frame allocator.
    ///
    /// # Panics
    /// As [`run_until`](IoContext::run_until).
    #[track_caller]
    pub fn run_until_with<F: Future>(&self, changes: Changes, future: F) -> Outcome<F::Output> {
        self.run_loop.rouse();
        self.run_loop.block_on_with(changes, future)
    }

    /// For a context that is a guest in somebody else's loop: runs what can be run now and looks at the driver, without
    /// waiting. Call it again when its [descriptor](IoContext::descriptor) is readable, or when the clock says what is
    /// returned here.
    ///
    /// # Panics
    /// As [`run`](IoContext::run).
    pub fn poll(&self) -> Option<Instant> {
        loop {
            self.run_loop.rouse();
            self.shared.look();
            self.run_loop.run_ready();
            // What came between the two was not announced by the descriptor.
            if self.run_loop.doze() {
                return self.run_loop.next_timer();
            }
        }
    }

    /// What becomes readable when [`poll`](IoContext::poll) has something to do, if the driver has such a thing.
    #[cfg(unix)]
    pub fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.shared.driver.descriptor()
    }

    /// Has [`run`](IoContext::run) return soon, with work left. If it is not running, the next call returns at once.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// As long as what is returned is there, [`run`](IoContext::run) does not return for lack of work: something will come
    /// from outside.
    pub fn work(&self) -> Work {
        Work::new(self.executor())
    }

    /// Whether there is nothing that could ever run again, as far as the context knows.
    fn is_dry(&self) -> bool {
        // The loop is asked last: what has ended meanwhile, elsewhere, may have posted.
        !self.run_loop.has_timers() && self.shared.driver.in_flight() == 0 && !self.run_loop.has_work()
    }
}

impl Drop for IoContext {
    fn drop(&mut self) {
        self.run_loop.rouse();
        self.close_services();
        // What waits for I/O hears of it, and what that posts is stopped with the loop.
        // What the driver throws has been reported by the panic hook; the loop ends all the same.
        let _ = Panic::catch(|| self.shared.driver.shut_down());
    }
}

impl fmt::Debug for IoContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoContext")
            .field("in_flight", &self.shared.driver.in_flight())
            .finish_non_exhaustive()
    }
}
