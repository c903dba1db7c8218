//! Drivers are safe code, and may be wrong in any way that the compiler lets pass: they mix up operations, drop them, finish them
//! where they are asked for them, panic. So may buffers and wakers be, which are the program's. Nothing of it may touch memory
//! that is somebody else's: these tests are also run under memory checkers.

mod attempts;
mod drivers;
mod endings;
mod lawless;
mod operations;
