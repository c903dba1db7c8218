//! Waiting for each other: who is served when, what closing does, and that a stop loses nothing, wherever it comes.
mod channels;
mod contracts;
mod everywhere;
mod locks;
mod one_for_all;
mod polled;
mod stopped;
