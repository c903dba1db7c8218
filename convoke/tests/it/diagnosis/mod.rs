//! The diagnosis: what it reports, and that it reports nothing about correct programs. The tests drive it by
//! hand, on their own clock.
mod correct_programs;
mod deadlocks;
mod programs;
mod stalls;
mod watchdog;
