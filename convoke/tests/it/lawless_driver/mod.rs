//! Drivers that break the contract. A driver is safe code and may be wrong in any way that compiles: it mixes
//! up operations, drops them, finishes them inside `cancel`, panics. Buffers and wakers come from the program
//! and may panic too. None of this may touch memory that belongs to others; these tests also run under memory
//! checkers.
//!
//! | module | contents |
//! | --- | --- |
//! | `lawless` | a source whose behaviour the test chooses |
//! | `operations` | operations that are mixed up, dropped, or finished inside `cancel` |
//! | `endings` | how such an operation ends |
//! | `attempts` | sources that lie about attempts |
//! | `drivers` | drivers that panic or lie |

mod attempts;
mod drivers;
mod endings;
mod lawless;
mod operations;
