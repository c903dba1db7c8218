//! Inspecting a running program: [`tree()`] shows every task and where it waits, [`diagnose()`] names tasks that hold their thread,
//! wait for themselves or for each other, and [`HOOKS`] call code of the program when tasks are spawned, polled and ended.

#[cfg(feature = "diagnosis")]
#[doc(inline)]
pub use convoke_inspect::diagnosis::{
    Abandoned, Deadlock, Diagnosing, Diagnosis, Entangled, Finding, Futurelock, Involved, Owned, Quiet,
    Stall, StallOver, Watcher, diagnose,
};
#[doc(inline)]
pub use convoke_inspect::tree::{TaskNode, TaskState, Tree, tree};
#[doc(inline)]
pub use convoke_task::hooks::{HOOKS, Hooks, Spawned, TaskEnd, TaskHooks, TaskObserver};
