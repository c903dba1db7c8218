//! Tests of all types: the order of service, closing, and that a stop loses nothing at any await.
mod channels;
mod contracts;
mod everywhere;
mod locks;
mod one_for_all;
mod polled;
mod stopped;
