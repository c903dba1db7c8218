//! Integration tests of `convoke-sim`: one file, or one folder, for each subject.

mod chaos;
mod checks;
mod clock_arithmetic;
mod clocks;
mod crash;
mod crash_anywhere;
mod disk;
mod driver_contract;
mod durability;
mod explore;
mod failures;
mod happy_eyeballs;
mod host_addresses;
mod hosts;
mod idle_copies;
mod lingering_close;
mod network;
mod one_point;
mod seeds;
mod trace;
