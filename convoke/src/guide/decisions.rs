//! Decisions: what was chosen, what else was possible, and what would change the choice.
//!
//! Each entry names the alternatives that were tried or considered, the price of the choice, and the observation that
//! would make us revisit it.
//!
//! # The model
//!
//! **An outcome has four variants** ([`Outcome`](crate::Outcome)): a value, an error, stopped, panicked. *Instead of* an
//! error type that has a case for cancellation (as `JoinError`), or a missing value. A stop is not an error: nobody has to
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
//! made of senders, as in the C++ papers, or senders that are futures. Applications need no sender; those who compose work
//! as values pay for no task. *Price:* some verbs exist for both (`retry`, `timeout`). *Revisit if* one of the two has no
//! users.
//!
//! # The environment
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
//! # Running
//!
//! **One context per core, and a pool for computing**, instead of one work-stealing pool for everything. A connection stays
//! where its descriptor and its memory are; its tasks need not be `Send`. *Price:* a connection that computes for long
//! delays its neighbours on that core; such work belongs on the pool. *Revisit if* real servers are unbalanced by it.
//!
//! **One thread runs a context.** P4003 lets several threads run one. Our contexts have no lock and no atomic operation on
//! the path of local work, which is where their speed comes from. What several threads are used for there, a
//! [`Runtime`](crate::runtime) with several contexts and [`serve`](crate::net::serve) do. *Revisit if* somebody has one
//! listener whose connections cannot be spread.
//!
//! **A budget of 128 awaits per poll.** *Instead of* yielding at every await, or never. Then the task runs behind what
//! timers and sockets have woken. *Price:* a few instructions for each await that is ready. *Revisit if* the lateness beside
//! a busy task (`fairness_*` of the bench) is more than tokio's.
//!
//! **A foreign future that waits after a stop counts as stopped.** *Instead of* waiting for it for ever
//! ([`ForeignFutures`](crate::env::ForeignFutures) chooses). A `timeout` around a query of another crate ends then, as
//! everybody expects. *Price:* that future is dropped where it waits, as everywhere else in Rust; a
//! [`shield`](crate::shield) keeps it. *Revisit if* that loses something that nobody could know of.
//!
//! # Code
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
