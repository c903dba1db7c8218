//! Structured async for Rust.
