//! Models of races, run by loom under every schedule: `cargo xtask test --only loom`. Without the feature
//! `loom` there are none.

#![cfg(feature = "loom")]

mod algorithms;

mod blocking;
mod children;
mod count;
mod counting_scope;
mod embedded_loop;
mod frame_arc;
mod from_callback;
mod limited;
mod lookups;
mod start_rendezvous;

mod model;
mod model_task;
mod policy;
mod pool_parking;
mod readiness;
mod registry;
mod remote_wakes;
mod rendezvous;
mod run_loop;
mod scope;
mod signals;
mod spawn_future;
mod split;
mod still_clock;
mod stop;
mod stop_walk;
mod strand;
mod sync_channels;
mod sync_locks;
mod sync_noted;
mod sync_one_for_all;
mod sync_polled;
mod task;
mod task_references;
mod task_state;
mod threads;
mod timers;
mod together;
mod transfer;
mod users_model;
mod wake_flag;
mod when_all;
