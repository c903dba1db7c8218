//! Clean-up: what a resource can rely on, however its user ends.
mod doors;
mod dropped;
mod everywhere;
mod grace;
mod problems;
mod resources;
mod stack;
