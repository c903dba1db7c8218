//! Evidence: what the papers behind Convoke predict, measured here.
//!
//! Convoke builds in Rust what four C++ papers describe. One of them, P4003 (coroutines for I/O), says how it wants to be
//! judged: a table of allocators (§2.3), metrics (§9.5) and predictions (§9.7). This page holds them against what
//! `convoke-bench` measures. The figures are instructions, counted by callgrind, because they do not depend on the load of
//! the machine; `cargo run --profile bench -p convoke-bench -- frame hop_typed hop_erased --instructions` prints them.
//!
//! # The frame allocator (§2.3)
//!
//! The paper: recycling frames is 3.1 (MSVC) and 1.55 (Apple clang) times as fast as the standard allocator, and 1.28 times
//! as fast as mimalloc. Here, for a frame of 256 bytes that is allocated, awaited and freed:
//!
//! | allocator | instructions | of recycling |
//! | --- | --- | --- |
//! | recycling, the default of a task | 38 | 1.0 |
//! | a bump pointer on a stack, the least there can be | 43 | 1.1 |
//! | mimalloc | 103 | 2.7 |
//! | the system's (glibc) | 160 | 4.2 |
//! | `Box::pin` on the system's | 174 | 4.6 |
//!
//! One thing differs here: an `async fn` that is awaited directly lies inside its caller and is not allocated at all. Only tasks,
//! erased futures and recursion need a frame. So the allocator decides the cost of a spawn, and not of every call.
//!
//! # Predictions (§9.7)
//!
//! | # | prediction | here |
//! | --- | --- | --- |
//! | 1 | the protocol is enough for all byte-oriented I/O | holds so far for sockets (TCP, UDP, Unix, pipes and other descriptors), names, signals, timers, the simulated network and disk, all behind one [driver contract](crate::driver). Files on real disks are not built yet |
//! | 2 | the allocator that is found through a thread-local variable is within 10 % of its benchmark everywhere | measured on Linux only. Inside a task, where the variable is read, a frame takes 77 instructions and not 38; a `Box::pin` there takes 180 |
//! | 3 | launching with two calls is no barrier | not measurable here; the launch is `launch(&executor).start(future)`, and applications use `#[convoke::main]` |
//! | 4 | the indirect call of an erased executor is below 5 % of an I/O operation | holds: a hop takes 81 instructions with the executor's type and 95 without it. An echo of 64 bytes over TCP takes the server about 600 instructions of its own, so that one erased hop is 2 % of these, and less of the whole operation, most of which is the kernel's |
//! | 5 | one type parameter is enough for a task | holds: tasks, handles and scopes name no executor and no environment |
//! | 6 | three libraries adopt it in five years | too early |
//!
//! # Metrics (§9.5)
//!
//! | metric | here |
//! | --- | --- |
//! | implementations | this one, with two drivers (epoll, and kqueue/IOCP through `polling`) and a simulated one |
//! | interoperability without glue | senders and futures are awaited in each other; traits of `futures-io` and `futures-core` in both directions |
//! | robustness of the thread-local pointer | it is set and restored by each poll, also when that panics; Miri, ThreadSanitizer and models of the races run over it |
//! | comprehension | no survey yet; the guide's chapter for people who come from tokio is the test of it |
