//! The client, against our server and against servers that are written byte by byte.

mod basics;
mod pool;
mod scripted;
mod timeouts;
