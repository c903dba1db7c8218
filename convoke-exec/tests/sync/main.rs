//! Waiting for each other: who is served when, what closing does, and that a stop loses nothing, wherever it comes.
#![cfg(all(feature = "testing", not(feature = "loom")))]

#[path = "../by_hand/mod.rs"]
mod by_hand;
mod channels;
mod contracts;
mod everywhere;
mod locks;
mod one_for_all;
mod polled;
mod stopped;
