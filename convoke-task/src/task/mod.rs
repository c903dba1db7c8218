//! A task in memory, and the protocol by which it runs, is woken, ends and is freed.
//!
//! # Memory
//! A task is one allocation, a [`cell::Cell`]: a [`header::TaskHeader`] that does not depend on the future's type, an
//! [`Ending`] that says where the outcome goes, and a body: first the future, then its outcome
//! ([`header::Stage`]). What only some tasks need ([`cold::ColdState`]) is a second allocation, created on
//! first use. Executors, wakers and parents know the header alone. It leads to a [`spawn_site::TaskKind`]:
//! the code that runs the task, its [`ParentLink`], and the line that spawned it.
//!
//! # Threads
//! An executor with one thread names it as its *owner thread*. Its tasks are *owned*: that thread changes
//! them by plain loads and stores. Any other thread is *remote*: it leaves flags in the second state word and
//! sends a *remote wake*, which the owner thread receives and acts on. A task of any other executor, or one
//! that moved with `reschedule`, is *shared*: every thread changes it atomically. [`state::Access`] says
//! which of the three applies.
//!
//! # References
//! The memory is freed when the last reference goes. Each of these is one:
//! - the task itself, until it has left its parent;
//! - a waker (more than four million of one task are counted in [`many_wakers`]);
//! - a handle of a child that other threads may hold. A handle that stays on the owner thread is a bit instead;
//! - a thread that must be sure of the memory for the length of a call.
//!
//! A runnable is no reference. It exists while `QUEUED` is set, there is one at most, and a task that is
//! queued has not left.
//!
//! # States
//! [`state::State`] holds the bits, has no unsafe code, and is model-checked on its own. Every transition
//! returns what its caller must do next; only the caller that is told so may do it.
//!
//! ```text
//!            wake: Post            begin               pause: Idle
//!   waiting ────────────▶ queued ─────────▶ running ────────────────▶ waiting
//!                            ▲                 │ pause: Post (woken meanwhile)
//!                            └─────────────────┤
//!                                              │ finish_and_leave
//!                                              ▼
//!                                            done ─────▶ left ─────▶ freed
//!                                              │ Later    ▲
//!                                              └──────────┘ remote wake received
//! ```
//!
//! 1. *Spawn.* The parent creates the task ([`NewTask`]), adds it to its list ([`Children`]) if it has one, and
//!    posts it.
//! 2. *Run.* The executor runs the runnable on one of its threads: [`cell::Cell::call`] sets `RUNNING` and polls.
//!    Until `pause` or `finish_and_leave`, that thread is *inside*: it alone may touch the body ([`Inside`]).
//! 3. *Wake.* Any holder of a reference. While the task runs, a wake sets `WOKEN`, and `pause` posts it again. A
//!    task that wakes itself by [`Frame::wake_task`](convoke_core::raw::Frame::wake_task) is posted again without it.
//! 4. *Stop.* As a wake, with the `STOP` bit. The future sees it when it is polled next. The thread that asks
//!    goes on to the scopes that are open in the task, and to their children ([`StopWalk`]): they do not wait
//!    for that poll.
//! 5. *End.* The thread that is inside drops the future, and the outcome replaces it. The
//!    task then waits, polled no more, until every operation that it adopted has completed: those may end on
//!    any thread, and the last one wakes it.
//! 6. *Leave.* [`Ending::ended`] runs inside, then [`Ending::deliver`] tells the parent. From then on the
//!    parent link may be gone and is not used. A remote wake in flight uses it, so the task waits for that
//!    one first.
//! 7. *Free.* By the thread that drops the last reference, whichever that is. Mostly that is the thread that
//!    lets the task leave. It frees first, and then tells a waiter of a root task ([`After`]): so the waiter may
//!    count on the memory being released.
//!
//! An executor may also refuse a runnable (it is dropped, or run with
//! [`Call::Stop`](convoke_core::raw::Call::Stop)): the future is then dropped unpolled and the task ends as
//! stopped. A refusal on a remote thread is sent to the owner thread; a future that is not `Send` is leaked
//! if its thread has ended.
//!
//! # Handles
//! Each handle permits just what its holder may do, so that code which has one is safe code. The rules are
//! numbered at the types.
//!
//! | handle | stands for | permits |
//! | --- | --- | --- |
//! | [`Spawnable`] | a future that may run as a task | to create one |
//! | [`NewTask`], [`Added`] | a task that was not posted; the same, in a list | to post it, or take the future back |
//! | `Queued` | the runnable | to post or run the task |
//! | `Held`, `Entered`, `WithFuture` | the thread that enters, is inside, has the future | to poll and to end the task |
//! | [`Inside`] | the thread inside, without the type | the fields of rule 2 of the header |
//! | `Ended`, [`Leaving`] | a task that has ended; that tells its parent | to leave; to be removed from a list |
//! | [`InList`] | a task in a list, with the lock held | to read its state |
//! | `Alive`, `TaskRef` | memory that is there; a counted reference | to wake, and to ask for a stop |
//! | `NotLeft` | rule 3 of the header | to read the kind and the parent link |
//! | [`Join`] | the handle's end of a task with a handle | to wait for the outcome |
//! | `Vacant`, `Vacated` | memory without a task; a task without its body | to fill; to destroy |
//!
//! Each function that is generic over the future is compiled for each type of task. So three handles have a part without the type,
//! which does all that needs none: [`Unposted`](new_task::Unposted) in `NewTask`, `Within` in `Entered`, `Done` in
//! `Ended`.
//!
//! # Files
//! | file | contents |
//! | --- | --- |
//! | `state.rs` | the state machine |
//! | `header.rs` | the header, and the numbered rules of which thread may touch which field |
//! | `reference.rs`, `queued.rs` | typed references: borrowed, counted, in a list, leaving; the runnable |
//! | `new_task.rs` | a task until it is posted, and the future that it is made of |
//! | `children.rs` | the lists of a parent: the one intrusive list of tasks |
//! | `with_handle.rs`, `handle_kind.rs` | a task with a handle: the two ends of its rendezvous |
//! | `unheard.rs` | panics of tasks whose handle is dropped later |
//! | `cell.rs` | the task with its type: run, poll, end, leave, free |
//! | `ending.rs` | where the outcome goes |
//! | `memory.rs` | allocation and deallocation |
//! | `inside.rs` | the running task as owner of its frame and of its operations |
//! | `in_flight.rs` | the count of the operations that a task waits for |
//! | `cold.rs` | the cold state: adopted operations, stop token, executors that the task moved to |
//! | `parent_link.rs`, `spawn_site.rs` | what tasks of one parent, and of one line of the program, have in common |
//! | `waker.rs`, `many_wakers.rs`, `wake_locally.rs` | wakers; waking without an indirect call |
//! | `remote_wake.rs`, `rerun.rs` | waking from a remote thread; running again where the executor has no queue |
//! | `ask_stop.rs`, `stop_walk.rs` | the stop callback; how a stop request goes down the tree |
//! | `asked_for.rs`, `asker.rs` | the reason of a stop that was requested through a handle; a stop handle |
//! | `abandoned.rs` | tasks whose handle was dropped before they ran |
//! | `observed.rs` | the observer that hooks have returned for a task |
//! | `view.rs` | a task as inspectors see it |

#[cfg(not(feature = "loom"))]
mod abandoned;
mod ask_stop;
mod asked_for;
mod asker;
mod cell;
mod children;
mod cold;
mod ending;
mod handle_kind;
mod header;
mod in_flight;
mod inside;
mod many_wakers;
mod memory;
mod new_task;
mod observed;
mod parent_link;
mod queued;
mod reference;
mod remote_wake;
mod rerun;
mod spawn_site;
#[doc(hidden)]
pub mod state;
mod stop_walk;
mod unheard;
mod view;
mod wake_locally;
mod waker;
mod with_handle;

#[cfg(not(feature = "loom"))]
pub use abandoned::take_abandoned;
pub(crate) use ask_stop::AskStop;
pub(crate) use asker::Asker;
pub(crate) use cell::OutcomeSlot;
pub(crate) use children::{Added, Children, Order};
pub(crate) use ending::{After, Ending};
pub use handle_kind::{Anywhere, HandleKind, SameThread};
pub(crate) use inside::Inside;
pub(crate) use memory::no_memory;
pub(crate) use new_task::{NewTask, Spawnable};
pub(crate) use parent_link::{ListOwner, ParentLink};
#[cfg(feature = "testing")]
pub(crate) use reference::TaskRef;
pub(crate) use reference::{InList, Leaving, Left, TaskId};
pub(crate) use stop_walk::{HearsStop, Listening, StopListener, StopWalk};
pub(crate) use unheard::Unheard;
pub use view::TaskView;
pub use wake_locally::wake_locally;
pub(crate) use with_handle::{BehindHandle, End, Join, WithHandle};
