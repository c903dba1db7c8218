//! Clean-up: what a resource can rely on, by whichever door its user leaves.
mod doors;
mod dropped;
mod everywhere;
mod grace;
mod problems;
mod resources;
mod stack;
