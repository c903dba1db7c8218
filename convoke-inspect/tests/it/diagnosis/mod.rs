//! The diagnosis: what it names, and that it says nothing about programs in which nothing is wrong. All of it is looked at by
//! hand, on a clock that the test moves.
mod entangled;
mod innocent;
mod programs;
mod stalls;
mod watchdog;
