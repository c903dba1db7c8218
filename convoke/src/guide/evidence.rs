//! Evidence: what the papers behind Convoke predict, measured here.
//!
//! Convoke builds in Rust what four C++ papers describe. One of them, P4003 (coroutines for I/O), says how it wants to be
//! judged: a table of allocators (§2.3), metrics (§9.5) and predictions (§9.7). This page holds them against what
//! `convoke-bench` measures. The example `papers` has the programs of all four papers.
//!
//! # How it was measured
//!
//! - **Instructions** are counted by callgrind. They do not depend on the load of the machine, and are the figures to rely on.
//! - **Times** are of one virtual machine with two cores, which other work shared: read them as orders of magnitude. The bench
//!   measures the contestants of a scenario in turns, in samples of about 70 ms, and keeps the median. It ran once while the machine
//!   was almost idle (a load of about 1, 11 samples), and nine times while it was not (loads of 2 to 15; seven runs with 11 samples, two
//!   with 41). The columns *busy* have the median of the nine runs, and in brackets the lowest and the highest; those of `Box::pin` are
//!   of seven. Under load, times are about three times as long, and ratios are nearer to 1. Times of the runs that count instructions
//!   (3 samples) are left out.
//! - Linux on x86-64, Rust 1.95, profile `bench` (thin LTO, one codegen unit), the allocator of glibc.
//!
//! ```console
//! $ cargo run --profile bench -p convoke-bench -- frame hop_typed hop_erased
//! $ cargo run --profile bench -p convoke-bench -- frame hop_typed hop_erased --instructions
//! ```
//!
//! # The frame allocator (§2.3)
//!
//! The paper: recycling frames is 3.1 (MSVC) and 1.55 (Apple clang) times as fast as the standard allocator, and 1.28 times
//! as fast as mimalloc. Here, for a frame of 256 bytes that is allocated, awaited and freed:
//!
//! | allocator | instructions | idle run | idle: of recycling | busy: of recycling |
//! | --- | --- | --- | --- | --- |
//! | recycling, the default of a task | 38 | 7.5 ns | 1.0 | 1.0 |
//! | a bump pointer on a stack, the least there can be | 43 | 7.7 ns | 1.0 | 0.9 (0.8 to 1.2) |
//! | mimalloc | 103 | 13.9 ns | 1.9 | 1.8 (1.4 to 2.0) |
//! | the system's (glibc) | 160 | 21.3 ns | 2.9 | 2.1 (1.8 to 2.9) |
//! | `Box::pin` on the system's | 174 | 22.8 ns | 3.1 | 2.0 (1.8 to 2.2) |
//!
//! Recycling was faster than the system's allocator and than mimalloc in each run, as the paper says. The paper
//! does not print its program; it times far more than one frame. So the figures are not those of one benchmark on two machines.
//!
//! One thing differs here: an `async fn` that is awaited directly lies inside its caller and is not allocated at all. Only tasks,
//! erased futures and recursion need a frame. So the allocator decides the cost of a spawn, and not of every call.
//!
//! # Predictions (§9.7)
//!
//! | # | prediction | here |
//! | --- | --- | --- |
//! | 1 | the protocol is enough for all byte-oriented I/O | holds for what is built, without an extension: sockets (TCP, UDP, Unix), pipes and other descriptors, names, signals, timers, TLS, HTTP/1 and 2 (`convoke-http`), a database (`convoke-postgres`), the simulated network and disk, all behind one [driver contract](crate::driver). **Open** for files on real disks, which are not built |
//! | 2 | the allocator that is found through a thread-local variable is within 10 % of its benchmark everywhere | **open**: see [below](#prediction-2-on-linux-alone) |
//! | 3 | launching with two calls is no barrier | does not apply: a Rust future has no frame before it is launched, so the launch is one builder, `launch(&executor).start(future)` |
//! | 4 | the indirect call of an erased executor is below 5 % of an I/O operation | holds: see [below](#prediction-4-the-erased-executor) |
//! | 5 | one type parameter is enough for a task | holds: tasks, handles and scopes name no executor and no environment |
//! | 6 | three libraries adopt it in five years | too early |
//!
//! # Prediction 2, on Linux alone
//!
//! The paper's criterion compares three standard libraries (libstdc++, libc++, MSVC's), because each platform finds a thread-local
//! variable in its own way: in an executable on Linux it is an access relative to a register; in a shared library, and on other systems,
//! it may be a call. Rust has one standard library, and this page one platform, so the
//! comparison *between* platforms is not made, and the prediction is neither confirmed nor refuted.
//!
//! On Linux the cost of the way through the variable can be measured: the same frame, once from an allocator that is at hand,
//! and once from the environment of the running task, which the variable leads to.
//!
//! | a frame of 256 bytes | instructions | idle run | busy: of recycling, directly |
//! | --- | --- | --- | --- |
//! | recycling, directly | 38 | 7.5 ns | 1.0 |
//! | `frame(…)` in a task | 79 | 12.0 ns | 1.2 (1.1 to 1.7) |
//! | `Box::pin` in a task | 180 | 27.3 ns | 2.1 (1.9 to 2.8) |
//!
//! Taken literally, within 10 % of the benchmark, the prediction fails on Linux if the benchmark is the direct one: the way through
//! the task costs 41 instructions. How many of these are the variable's was not separated; the two also differ in how the future is
//! polled. Beside what a program would write otherwise, `Box::pin` in a task, it is 1.8 times as fast in the busy runs (1.7 to 1.8) and
//! 2.3 times in the idle one.
//!
//! # Prediction 4, the erased executor
//!
//! | a hop: posting oneself to the loop one runs on | instructions | idle run | busy runs |
//! | --- | --- | --- | --- |
//! | with the executor's type | 81 | 6.6 ns | 22.9 ns (17.7 to 26.9) |
//! | erased ([`ExecutorRef`](crate::executor::ExecutorRef)) | 95 | 10.4 ns | 30.2 ns (23.1 to 39.4) |
//!
//! The two are measured one after the other, and not in turns: in the busy runs their difference is between −1 and 21 ns, and
//! says little. By instructions it is 14. An echo of 64 bytes over TCP takes the server about 600 instructions of its own, so that one
//! erased hop is 2 % of these. Of the whole operation, most of which is the kernel's (24 µs at the rate that README gives for one
//! connection), the 4 ns of the idle run are less than 0.1 %. "Across platforms", which the criterion asks for, is open as above.
//!
//! # The simulator beside madsim
//!
//! A message of 64 bytes over simulated TCP, a request or its answer, with the usual link, and the trace that every run records. madsim
//! simulates only programs that are built for it, so its echo is a program of its own.
//!
//! | clients, each on a host of its own | Convoke, instructions | madsim 0.2.34, instructions | times, madsim's of Convoke's |
//! | --- | --- | --- | --- |
//! | 10 | 4,690 | 5,290 | 1.6 (0.9 to 4.2) |
//! | 100 | 4,810 | 5,410 | 1.4 (1.2 to 2.2) |
//! | 1,000 | 4,960 | 5,390 | not taken |
//!
//! Instructions are the difference between a long and a short run, so that the start of the hosts is left out. The times are of three
//! runs in turns on a machine with a load of 13: the median of their ratios, with the lowest and the highest. A step costs
//! 6 % more instructions with a hundred times the hosts.
//!
//! ```console
//! $ cargo run --profile bench -p convoke-bench --features sim -- sim_echo_10 sim_echo_100
//! $ RUSTFLAGS="--cfg madsim" cargo run --release \
//!     --manifest-path convoke-bench/madsim/Cargo.toml -- 100 1000 11
//! ```
//!
//! # Where the instructions of a request over HTTP go
//!
//! `convoke-http` with its default limits, and hyper on the current-thread runtime of tokio: bare, with no limit and no task per request;
//! and as a careful program has it, with a timer for heads and a task per request. The same hyper, handler and allocator, 64 connections,
//! the instructions of the server's process alone, of a request that is answered with `hello`.
//!
//! | HTTP/1.1 | Convoke | bare hyper on tokio | with a timer and tasks |
//! | --- | --- | --- | --- |
//! | all | 9,760 | 6,910 | 12,280 |
//! | hyper and its crates | 5,020 | 4,720 | 5,590 |
//! | the task of the request: its start and end, handle, name, limits of the head, record | 1,770 | | |
//! | header time, idle time, write time, drain, counts of requests; clock | 640 | 70 | 140 |
//! | the layers of the stream: prefix, TLS or none, activity, hyper's traits | 510 | | |
//! | driver and run loop; on tokio the runtime, with its tasks and timers | 230 | 980 | 3,250 |
//! | moves of requests and responses, other copies | 930 | 340 | 630 |
//! | allocator | 470 | 710 | 2,480 |
//!
//! The rest of each column is small. System calls are the same three: one `recvfrom` and one `sendto` or `writev` a request, and an `epoll_wait`
//! for many. By HTTP/2 it is 22,620, 21,250 and 24,490.
//!
//! About three quarters of the processor time of such a request is the kernel's. To need a twentieth less of it than bare hyper, a server
//! would have to save a fifth of its instructions. Hyper with what it allocates is more than four fifths: a server on
//! hyper whose runtime and promises cost nothing would come near that, and one that keeps promises cannot. Beside a program that makes two
//! of the promises on tokio, the request has 0.79 of the instructions.
//!
//! # The memory of an idle TLS connection
//!
//! Both ends of a connection by TLS 1.3 that have said a byte each, in bytes that are allocated:
//!
//! | pair of | bytes |
//! | --- | --- |
//! | rustls, without buffers of its own (`unbuffered`), and no stream | 7,400 |
//! | `convoke-tls`, with the sockets | 7,590 |
//! | tokio-rustls, with the sockets | 13,750 |
//!
//! Convoke's own share is the difference of the first two, less than 200 bytes: an idle stream has no buffer. The state of rustls
//! alone is 0.54 of the pair of tokio-rustls, so half of that pair cannot be reached on rustls.
//!
//! # Where the instructions of a task go
//!
//! Instructions of one operation on a context with its driver, counted by callgrind as the difference of a long and a short run. All are
//! built with thin LTO and one codegen unit, in one small program. `convoke-bench`, where other code competes to be inlined, counts 370,
//! 667, 182 and 542 for Convoke in these rows.
//!
//! | operation | Convoke | async-task 4.7 with a bare queue | monoio 0.2, poll driver |
//! | --- | --- | --- | --- |
//! | spawn a task and await its handle, 1000 at once | 366 | 460 | 377 |
//! | spawn a task and await its handle, one by one | 663 | 691 | 616 |
//! | yield, one task | 155 | 190 | 161 |
//! | a round trip between two tasks: 2 wakes, 2 switches | 541 | 529 | 452 |
//!
//! A task that is spawned and joined pays for promises that the peers do not make. These numbers were added up by hand from the
//! disassembly, and are approximate:
//!
//! | instructions | promise |
//! | --- | --- |
//! | 37 | it is in the list of its scope, which ends after it: a lock, a link and their reverse |
//! | 31 | everything in it finds its task, environment and stop request: the poll frame, and restoring the one around |
//! | 14 | it is stopped and woken from any thread although its own one uses no atomics: whose thread is this, is there a remote request |
//! | 13 | a diagnosis can begin at any time, and sees which task runs and which line has spawned it |
//! | 12 | no await starves the others: the budget of the poll, and of awaiting the handle |
//! | 6 | a panic or a stop of the child is not lost: the outcome is checked before its parent is told |
//!
//! `join` of two futures that are ready at once costs 160, where `futures::join!` in the same task costs 83; of each, 36 are the loop
//! and the call of an `async fn` around it. The branches have an environment and a stop request of their own, so that one poll frame (32)
//! is made for all of them; their values and the state of the group are made, and moved with the future (30); each branch is polled, dropped
//! and stored on its own (13 each, and 3 to make the frame that of the next branch); the rest is the budget (12), the check for a stop (7),
//! and the end. Without a frame a branch could not be asked to stop while its sibling goes on: that is the floor.
//!
//! `when_all` of two senders that complete at once costs 129. Such a group lies on the stack of the poll, and asks for an environment only
//! if a child does.
//!
//! # Metrics (§9.5)
//!
//! | metric | here |
//! | --- | --- |
//! | 1, implementations: two standard libraries | does not apply to a library. There is this one, with one driver over the kernel's readiness (epoll; kqueue and IOCP through `polling`) and a simulated one. The tests run on Linux |
//! | 2, three libraries adopt it in five years | none yet |
//! | 3, two libraries compose without glue | partly: an HTTP library (hyper), a database driver (tokio-postgres) and a TLS library (rustls), which know nothing of each other or of Convoke, run over the same sockets in one tree of tasks; but each needed a crate of adaptors of ours. Without any: senders and futures are awaited in each other, and the traits of `futures-io` and `futures-core` work in both directions |
//! | 4, the thread-local pointer is right on three platforms | on Linux: it is set and restored by each poll, also when that panics (`window` of the example `papers`); Miri, ThreadSanitizer and models of the races run over it. Other platforms: not run |
//! | 5, developers understand it | no survey. There is nothing to understand about two calls; the guide's chapter for people who come from tokio is the test of the rest |
