//! Convoke, second floor.

pub mod pool;
#[cfg_attr(feature = "loom", expect(dead_code, reason = "its users need threads that loom does not know"))]
mod report_panic;
#[cfg(any(feature = "testing", feature = "loom"))]
pub mod testing;

#[cfg(not(feature = "loom"))]
pub use pool::{PoolExecutor, ThreadPool, ThreadPoolBuilder};
#[allow(unused_imports)]
use report_panic::report_panic;

pub mod raw {
    //! The low-level door: the parts of executors that are model-checked on their own.

    #[doc(hidden)]
    pub use crate::pool::injector::Injector;
    #[doc(hidden)]
    pub use crate::pool::sleepers::{Searching, Sleepers};
}
