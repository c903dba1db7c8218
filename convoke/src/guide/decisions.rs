//! Decisions: what was chosen, what else was possible, and what would change the choice.
//!
//! Each entry names the alternatives that were tried or considered, the price of the choice, and the observation that
//! would make us revisit it. [The last section](#what-the-papers-decided) holds them against the decisions of the papers.
//!
//! # The model
//!
//! **An outcome has four variants** ([`Outcome`](crate::Outcome)): a value, an error, stopped, panicked. *Instead of* an
//! error type that has a case for cancellation (as `JoinError`), or a missing value. A stop is not an error: no code has to
//! handle it, and no `?` can turn it into one. *Price:* a program that ends at a stop has no line that says so; the reason
//! is printed at the end of the program. *Revisit if* the language gets effects for it.
//!
//! **A stop is a request, and clean-up is awaited.** *Instead of* dropping the future, as other runtimes do. A destructor
//! cannot wait, so a connection cannot say goodbye, a transaction cannot roll back, and a buffer may still belong to the
//! kernel. *Price:* a future that never listens is not ended by a stop; futures of other crates end at their next
//! `Pending` ([`ForeignFutures`](crate::env::ForeignFutures)). *Revisit if* Rust gets an asynchronous `Drop`.
//!
//! **A stopped `async fn` is not resumed.** A future that honours a stop marks the frame around it and returns `Pending`;
//! the owner of the frame drops the body in place and awaits its clean-up. *Instead of* an error that each function passes
//! up. It works through any `async fn` and any combinator, without a macro. *Price:* after a caught stop the next wait is
//! stopped again, as long as the request holds; the program says so on standard error. *Revisit if* users keep catching
//! stops by mistake.
//!
//! **A scope is the only way to start work.** *Instead of* a free `spawn`. Errors, panics and ends have one place to go.
//! *Price:* children of a parallel scope must be `'static`, because a future may be leaked; children that borrow run
//! inside the task ([`local_scope`](crate::local_scope)) or under a blocked thread
//! ([`blocking_scope`](crate::blocking_scope)). *Revisit if* Rust gets types that cannot be leaked.
//!
//! **Tasks and senders stand side by side**, on one core: neither is built from the other. *Instead of* tasks that are
//! made of senders, as in the C++ papers, or senders that are futures. Applications need no sender; programs that
//! compose work as values pay for no task. *Price:* some verbs exist for both (`retry`, `timeout`). *Revisit if* one of
//! the two has no users.
//!
//! **A stop request holds, and has a reason.** *Instead of* an event that is delivered once, as an exception or as `abort`.
//! A loop that catches too much cannot swallow it. *Price:* what waits after a caught stop needs a
//! [`shield`](crate::shield). *Revisit if* shields are common outside of clean-up.
//!
//! **The first failure ends a scope**, and its siblings are stopped and awaited. *Instead of* collecting results, or of
//! going on. It is right for the parts of one job. *Price:* servers need another rule, so there are
//! [policies](crate::scope::policy), [`supervise`](crate::Scope::supervise) and [`serve`](crate::net::serve). *Revisit if*
//! most scopes name a policy.
//!
//! **An error of the body after a stop from outside that cut a child short is still a stop.** *Instead of* the error. The body
//! most likely failed because its child did not do its part ("channel closed"), and a caller that handles that error would retry
//! work that nobody wants any more. An error of a child, or of a body whose children have all ended, is never hidden. *Price:* a body
//! that fails for another reason at that moment is not heard. *Revisit if* such an error is missed in practice.
//!
//! **Bodies that are nested directly in one task are polled inside each other**, as functions call each other, and continue on a new stack
//! when a part of the thread's own is used (feature `deep`). *Instead of* polling a deep body later, from the loop of its task: the futures
//! around it, which may be of other crates, would have returned by then, and what they set up for the time of a poll (a span, a
//! task-local) would not hold in it. Bytes of stack for each level of a recursion, of a future that is boxed at each level (`cargo run
//! --example stack_of_a_level -p convoke-tokio`):
//!
//! | level | without optimisation | with it |
//! | --- | --- | --- |
//! | `Box::pin` alone | 192 | 80 |
//! | tokio's `timeout` | 576 | 304 |
//! | `timeout` | 2,096 | 400 |
//! | `join` of two | 2,848 | 352 |
//! | `using` | 2,848 | 448 |
//! | `scope` | 2,896 | 688 |
//! | `local_scope` | 2,784 | 1,280 |
//!
//! *Price:* a dependency with inline assembly, for x86-64 and AArch64, and a comparison for each body that is polled. The feature is among the
//! defaults, because a recursion that ends the process is found in production, and what it costs is found by who looks for it: a program
//! that counts kilobytes turns the defaults off, as the one of `cargo xtask weigh` does. A level of a scope costs time in proportion to its
//! depth: it asks the levels around it for their deadlines. Without the feature 500 scopes fit on two megabytes without optimisation, and 2,000
//! with it; recursion of any depth then goes through children, or `task(…).await`, which cost heap: a million levels end on that stack.
//! *Revisit if* a platform's stacks cannot be switched, or a tool for debugging loses its way in them.
//!
//! **A dropped handle asks its child to stop.** *Instead of* letting it run, as `JoinHandle` does, or of forbidding the
//! drop. A result that no task can take is not worth computing. *Price:* `let _ = s.spawn_future(…)` stops the child, so
//! that the type must be used, and `spawn` is the one to write. *Revisit if* users keep writing it.
//!
//! **Of branches that are ready at once the first in order wins** ([`race`](crate::race)). *Instead of* a random one, as
//! `select!`. A program is then the same in each run, which simulations need. *Price:* a branch that is always ready starves
//! those behind it. *Revisit if* that is found in real programs more often than once.
//!
//! **Clean-up is a closure around a body** ([`using`](crate::using), [`ensure`](crate::ensure)). *Instead of* a macro, a
//! guard whose `Drop` spawns, or an explicit `close().await`. It works in stable Rust, borrows from around, and no path out
//! of the body avoids it. *Price:* nesting ([`cleanups`](crate::cleanup::cleanups) has none), one allocation, and 30 seconds
//! of [grace](crate::cleanup::GRACE) that can delay an end. *Revisit if* Rust gets an asynchronous `Drop` or `defer`.
//!
//! **A generator runs in the task of its consumer**, one value at a time. *Instead of* a task and a channel. It needs no
//! buffer and no bound, and stops where it yields. *Price:* producer and consumer do not overlap; where they should, there
//! are channels. *Revisit if* Rust stabilises `async gen`.
//!
//! # Senders
//!
//! **One `complete`, with an outcome.** *Instead of* three functions (`set_value`, `set_error`, `set_stopped`) and a list
//! of signatures. An adaptor is a function on [`Outcome`](crate::Outcome), and a sender that cannot fail says so with
//! [`Never`](crate::Never). *Price:* one type of value for each sender; several are a tuple or an enum. *Revisit if* that
//! costs copies that the optimiser leaves.
//!
//! **`start` is unsafe, and safe code never calls it.** *Instead of* a reference count for each operation. The storage of an
//! operation lies in what waits for it, without an allocation. *Price:* authors of algorithms with children write unsafe
//! code; those that only transform an outcome do not. *Revisit if* Rust gets types that are neither leaked nor moved.
//!
//! **A counting scope that is dropped with work in it panics**, and names the work. *Instead of* ending the process, as
//! P3149 does, of blocking, or of detaching. *Price:* a panic in a destructor; during another panic it is a message.
//! *Revisit if* it hides the first panic of a real program.
//!
//! **Spawning into a closed scope is an error**, which hands the work back. *Instead of* work that ends as stopped, as in
//! P3149, where no receiver would see that. *Price:* a `Result` at each call. *Revisit if* all callers unwrap it.
//!
//! **A function that returns a sender to be awaited says `impl AwaitableSender`** ([`AwaitableSender`](crate::sender::AwaitableSender)).
//! *Instead of* `impl Sender`, which could be awaited if [`Sender`](crate::sender::Sender) had `IntoFuture` as a supertrait. Both
//! forms of that were tried, the first on a model with two senders, the second on `convoke-sender`:
//!
//! - *For all senders.* It compiles, `.await` works without help, and safe code reads freed memory. An operation goes on when its future
//!   is forgotten, or dropped, because nobody can make Rust code wait there; a closure in it that borrows is called after what it
//!   borrows is gone. AddressSanitizer reports it. `sync_wait` may borrow, because it returns when the work has ended; for `await`,
//!   the compiler must refuse:
//!
//!   ```
//!   # use convoke::sender::prelude::*;
//!   let text = String::from("borrowed");
//!   assert_eq!(sync_wait(just(()).then(|()| text.len())), Outcome::Value(8));
//!   ```
//!
//!   ```compile_fail,E0373
//!   # use convoke::prelude::*;
//!   # use convoke::sender::prelude::*;
//!   # use std::future::{Future, IntoFuture, poll_fn};
//!   # use std::task::Poll;
//!   let forgets = block_on(async {
//!       let text = String::from("borrowed");
//!       let sender = schedule(&convoke::env::current::executor()).then(|()| text.len());
//!       let mut started = Box::pin(sender.into_future());
//!       poll_fn(|cx| Poll::Ready(started.as_mut().poll(cx).is_pending())).await;
//!       std::mem::forget(started); // The operation is queued, and `text` is freed.
//!   });
//!   ```
//!
//! - *With `Sender: 'static`.* That is sound, but no sender could borrow any more, neither in `sync_wait` nor in `bulk` over a slice; all values
//!   that pass through one had to be `Send`; and `'static` spreads to the closures of all generic code over senders (454 errors of the
//!   compiler to begin with). To give the name `Sender` to the narrower trait moves the same bound to whoever writes `S: Sender`.
//!
//! *Price:* `impl Sender` hides that it can be awaited; its caller writes `.into_awaited().await`. *Revisit if* Rust gets futures that cannot be
//! leaked.
//!
//! **A task that fails is another function** ([`try_task`](crate::sender::try_task)). *Instead of* deciding by the type: `task` of a future that
//! returns a `Result` completes with that `Result` as its value, which code that is generic over the future relies on. *Price:* who forgets
//! `try_` has a `when_all` that waits for all. *Revisit if* that is a common mistake.
//!
//! # The environment
//!
//! **It is one struct, owned by the launch and borrowed below** ([`Env`](crate::env::Env)). *Instead of* a type parameter with
//! queries, as in P3552. *Price:* values of the program's own are looked up in a list, by the address of a
//! [key](crate::env::Local). *Revisit if* programs have more than a dozen keys.
//!
//! **The environment is found through the poll** (a pointer in a thread-local variable that each poll of a task sets and
//! restores). *Instead of* a parameter, or a global runtime. Foreign futures between two of ours need not know of it.
//! *Price:* it exists only while a task is polled, so constructors must not depend on it; our futures read it at their
//! first poll. *Revisit if* `Context` gets extensions on stable Rust.
//!
//! **The executor is erased** ([`ExecutorRef`](crate::executor::ExecutorRef), two words). *Instead of* a type parameter of
//! every task. Functions and traits of a library name no executor, and can be compiled once. *Price:* an indirect call for
//! each post: see [`evidence`](super::evidence). *Revisit if* it costs more than 5 % of an I/O operation.
//!
//! **Memory comes from the chain's frame allocator**, which by default recycles per thread. *Instead of* the global
//! allocator. Spawning allocates nothing in a steady state, and a chain can have a bound. *Price:* memory that one thread
//! frees for another goes through a list with an atomic operation. *Revisit if* the global allocator is as fast:
//! [`evidence`](super::evidence) has the figures.
//!
//! **All memory that a task needs is its own**: not only frames, but also scopes, clean-ups, stop sources, locals, wakers of branches, boxed and
//! split senders. If the allocator is full, frames, scopes and operations fail, and the rest falls back on the global allocator: a stop,
//! a wake-up or a clean-up does not fail for lack of memory. *Instead of* the frames alone, as in P4003. What the program makes and
//! keeps is not the task's: vectors that it passes in or gets back, names, locks and channels, which tasks of several chains share.
//! *Price:* a handle of one word beside each piece. *Revisit if* a chain with a bound is found to need it for channels, too.
//!
//! **The allocator of a context is chosen when it is made.** *Instead of* a setter, as in P4003. Reading it takes no lock.
//! *Price:* a launch names its context. *Revisit if* a program has to change it while work runs.
//!
//! # Running
//!
//! **A task resumes where it belongs**, wherever the operation completed that it waited for. *Instead of* going on there.
//! Reading a function tells on which thread it runs. *Price:* a hop, unless the operation completed on that executor, or
//! inline. *Revisit if* hops are visible in a profile of a server.
//!
//! **Executor and scheduler are one trait**, with `post`, which never runs anything inline, and `dispatch`, which hands work
//! back. *Instead of* callables, or of a sender for each hop. Queuing is one pointer and no allocation, and a queue that is
//! dropped stops its work, so that nothing is lost. *Price:* only work that holds a header can be posted. *Revisit if* users
//! write adaptors for closures.
//!
//! **One context per core, and a pool for computing**, instead of one work-stealing pool for everything. A connection stays
//! where its descriptor and its memory are; its tasks need not be `Send`. *Price:* a connection that computes for long
//! delays its neighbours on that core; such work belongs on the pool. *Revisit if* real servers are unbalanced by it.
//!
//! **One thread runs a context.** P4003 lets several threads run one. Our contexts have no lock and no atomic operation
//! on the path of local work, which is where their speed comes from. A [`Runtime`](crate::runtime) with several
//! contexts and [`serve`](crate::net::serve) use the other cores. *Revisit if* there is a program with one listener
//! whose connections cannot be spread.
//!
//! **A budget of 128 awaits per poll.** *Instead of* yielding at every await, or never. A task whose budget is spent
//! runs again after the tasks that timers and sockets have woken. *Price:* a few instructions for each await that is
//! ready. *Revisit if* the lateness beside a busy task (`fairness_*` of the bench) is more than tokio's.
//!
//! **A foreign future that waits after a stop counts as stopped.** *Instead of* waiting for it for ever
//! ([`ForeignFutures`](crate::env::ForeignFutures) chooses). So a `timeout` around a query of another crate ends in
//! time. *Price:* that future is dropped where it waits, as everywhere else in Rust; a [`shield`](crate::shield) keeps
//! it. *Revisit if* programs lose data by it unnoticed.
//!
//! **Blocking work has threads and a bound of its own** ([`blocking`](crate::blocking())), and is asked to stop. *Instead of*
//! growing the pool, or of `block_in_place`. *Price:* a function that does not look is left behind after its grace period,
//! and reported. *Revisit if* the bound deadlocks programs that block on blocking work.
//!
//! **Services end in reverse order, and are awaited** ([`Context`](crate::executor::Context)). *Instead of* statics, or of a
//! `shutdown` that must not wait. *Price:* a service that hangs delays the end until its grace period is over. *Revisit if*
//! services form cycles in practice.
//!
//! # Code
//!
//! **Streams have the traits of `futures-io`.** *Instead of* tokio's, or of our own. They are the ones that no runtime owns,
//! and methods of our types cover what people call. *Price:* crates that know only tokio's need an adaptor. *Revisit if* the
//! standard library has them.
//!
//! **Stable Rust, no `--cfg`, features that only add.** *Instead of* nightly generators, allocators and `async Drop`.
//! *Price:* named futures, `dyn` where the language cannot say more, a shim for allocators. *Revisit* with each feature that
//! is stabilised.
//!
//! **Unsafe code is behind types that make their callers safe**, in few files, each block with the fact that it relies on.
//! *Instead of* one big unsafe module, or none. Races are modelled with loom; Miri, ThreadSanitizer, AddressSanitizer and
//! valgrind run over the tests. *Price:* synchronisation goes through a shim. *Revisit if* a tool finds what the others
//! have missed twice.
//!
//! **Drivers own buffers until an operation is done.** *Instead of* reads into borrowed memory only. The same contract
//! holds for readiness (epoll), completion (io_uring) and simulation. *Price:* owned buffers in the low-level interface;
//! the ordinary one borrows. *Revisit if* a kernel offers safe borrowed completion.
//!
//! **The simulated driver is a driver.** *Instead of* mocks of sockets and clocks. What runs in production runs in the
//! simulation, unchanged, byte by byte. *Price:* its tests are slower than mocks. *Revisit if* a fault of real networks
//! cannot be expressed.
//!
//! # What the papers decided
//!
//! | paper | its decision | here |
//! | --- | --- | --- |
//! | P4003 §9.3 | the environment is a second argument of `await_suspend`, so that a mismatch does not compile | it is found through the poll: any future can be awaited; [foreign ones](crate::env::ForeignFutures) have a policy |
//! | P4003 §9.3 | the allocator is found through a thread-local variable | the same, and for the whole environment |
//! | P4003 §9.3 | the executor is erased | the same |
//! | P4003 §9.3 | `io_env` is passed by pointer | the same, without a null |
//! | P4003 §9.3 | contexts have a common base class | a [`Context`](crate::executor::Context) is a part of a context, not a base |
//! | P4003 §3.4 | launching takes two calls | one builder: a Rust future has no frame before it is launched |
//! | P4003 §3.4 | a launch is detached | it is not: what `start` returns waits when it is dropped |
//! | P3552 §4.3 | tasks cannot be assigned or copied | the same, by ownership |
//! | P3552 §4.5 | tasks are affine to their scheduler | the same |
//! | P3552 §4.6 | the allocator is an argument | it is part of the environment |
//! | P3552 §4.9 | errors are `co_yield`ed | they are returned |
//! | P3552 §4.11 | clean-up is not the task's matter | it is: P1662 |
//! | P3149 §5.6 | a kept sender may keep a join waiting; that is better than use after free | the same, though here the compiler excludes the latter |
//! | P3149 §6.1 | what is spawned neither fails nor returns a value | the same, checked by the compiler |
//! | P1662 | clean-up is awaited at the end of a block, by a new keyword | by a closure |
//! | P1662 | a coroutine can be resumed with "done", and unwinds | the same, by a mark in the poll frame |
