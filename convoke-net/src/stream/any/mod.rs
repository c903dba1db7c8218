//! Streams with an erased type. They are two words, no call allocates, and a function that takes one is
//! compiled once.
//!
//! | | owned | borrowed |
//! | --- | --- | --- |
//! | reads and writes | [`AnyStream`] | [`AnyStreamMut`] |
//! | reads | [`AnyReadStream`] | [`AnyReadStreamMut`] |
//! | writes | [`AnyWriteStream`] | [`AnyWriteStreamMut`] |
//!
//! [`AnyReader`] and [`AnyWriter`] are the halves of a stream for two tasks. All of them implement
//! `futures_io::{AsyncRead, AsyncWrite}` and have the methods `read`, `write` and their like. The macros of
//! `methods` write these for each type.

mod borrowed;
mod halves;
mod methods;
mod one_way;
mod stream;

pub use borrowed::{AnyReadStreamMut, AnyStreamMut, AnyWriteStreamMut};
pub use halves::{AnyReader, AnyWriter};
pub use one_way::{AnyReadStream, AnyWriteStream};
pub use stream::{AnyStream, Bytes};
