//! Tests of all types: the order of service, closing, and that a stop loses nothing at any await.
mod allocations;
mod channels;
mod contracts;
mod everywhere;
mod everywhere_polled;
mod lagging;
mod locks;
mod notify;
mod one_for_all;
mod polled;
mod reserved;
mod stopped;
mod streams;
mod threads;
