//! A task in memory, and the protocol by which it runs, is woken, ends and is freed.
//!
//! # Memory
//! A task is one allocation, a [`Cell`]: a [`TaskHeader`] that does not depend on the future's type, an
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
//! 1. *Spawn.* The parent allocates ([`Vacant`]), fills in future and ending, and posts the runnable.
//! 2. *Run.* The executor runs the runnable on one of its threads: [`Cell::call`] sets `RUNNING` and polls.
//!    Until `pause` or `finish_and_leave`, that thread is *inside*: it alone may touch the body ([`Inside`]).
//! 3. *Wake.* Any holder of a reference. While the task runs, a wake sets `WOKEN`, and `pause` posts it again.
//! 4. *Stop.* As a wake, with the `STOP` bit. The future sees it when it is polled next.
//! 5. *End.* The thread that is inside drops the future, and the outcome replaces it. The
//!    task then waits, polled no more, until every operation that it adopted has completed: those may end on
//!    any thread, and the last one wakes it.
//! 6. *Leave.* [`Ending::ended`] runs inside, then [`Ending::deliver`] tells the parent. From then on the
//!    parent link may be gone and is not used. A remote wake in flight uses it, so the task waits for that
//!    one first.
//! 7. *Free.* By the thread that drops the last reference, whichever that is.
//!
//! An executor may also refuse a runnable (it is dropped, or run with
//! [`Call::Stop`](convoke_core::raw::Call::Stop)): the future is then dropped unpolled and the task ends as
//! stopped. A refusal on a remote thread is sent to the owner thread; a future that is not `Send` is leaked
//! if its thread has ended.
//!
//! # Handles
//! Each handle permits just what its holder may do, so that code which has one is mostly safe code:
//! - [`reference::Alive`]: the memory is there: wake, ask for a stop, count a reference.
//!   [`reference::TaskRef`] is a counted one.
//! - `Held` (in `cell.rs`): the runnable: enter the task. `Entered`: the thread is inside, with [`Inside`]
//!   for the parts without type; `WithFuture`: and the future is still there. `Ended`: let the task leave, or
//!   free it.
//! - [`Vacant`]: memory for a task; `Vacated`: a task without its body, to be destroyed.
//!
//! # Files
//! | file | contents |
//! | --- | --- |
//! | `state.rs` | the state machine |
//! | `header.rs` | the header, and the numbered rules of which thread may touch which field |
//! | `reference.rs` | typed references: `Alive`, which borrows, and `TaskRef`, which is counted |
//! | `cell.rs` | the task with its type: run, poll, end, leave, free |
//! | `memory.rs` | allocation and deallocation |
//! | `inside.rs` | the running task as owner of its frame and of its operations |
//! | `cold.rs` | the cold state: adopted operations, stop token, executors that the task moved to |
//! | `parent_link.rs`, `spawn_site.rs` | what tasks of one parent, and of one line of the program, have in common |
//! | `waker.rs`, `many_wakers.rs`, `wake_locally.rs` | wakers; waking without an indirect call |
//! | `remote_wake.rs`, `rerun.rs` | waking from a remote thread; running again where the executor has no queue |
//! | `ask_stop.rs`, `view.rs` | the stop callback; a task as inspectors see it |

mod ask_stop;
mod cell;
mod cold;
mod header;
mod inside;
mod many_wakers;
mod memory;
mod parent_link;
mod reference;
mod remote_wake;
mod rerun;
mod spawn_site;
#[doc(hidden)]
pub mod state;
mod view;
mod wake_locally;
mod waker;

pub(crate) use ask_stop::AskStop;
pub(crate) use cell::{Cell, Ending, Known, no_memory};
pub(crate) use header::{TaskHeader, drop_handle, drop_reference};
pub(crate) use inside::Inside;
pub(crate) use memory::Vacant;
pub(crate) use parent_link::{List, ParentLink};
#[cfg(feature = "testing")]
pub(crate) use reference::{Alive, TaskRef};
pub use view::TaskView;
pub use wake_locally::wake_locally;
