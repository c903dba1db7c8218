//! Convoke, second floor.

pub mod context;
pub mod pool;
mod report_panic;
pub mod strand;
#[cfg(any(feature = "testing", feature = "loom"))]
pub mod testing;

pub use context::Context;
#[cfg(not(feature = "loom"))]
pub use pool::{PoolExecutor, ThreadPool, ThreadPoolBuilder};
use report_panic::report_panic;
pub use strand::Strand;

pub mod raw {
    //! The low-level door: the parts of executors that are model-checked on their own.

    #[doc(hidden)]
    pub use crate::pool::injector::Injector;
    #[doc(hidden)]
    pub use crate::pool::sleepers::{Searching, Sleepers};
    #[doc(hidden)]
    pub use crate::strand::turns::{AfterPost, Next, Turns};
}
