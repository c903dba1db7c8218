//! A pool whose threads could not be started when it was first asked for. The program that has no room for them is
//! this test binary, started once more: it limits its own address space.
#![cfg(all(feature = "net", feature = "pool", target_os = "linux"))]
#![allow(unsafe_code)]

use std::process::Command;

use convoke::prelude::*;
use convoke::run_on;
use convoke::runtime::{self, Runtime};

/// The variable that makes this process the program.
const ROLE: &str = "CONVOKE_TEST_LATE_POOL";

const STARTED: &str = "started by a later call";

#[test]
fn the_program() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let outcome = Runtime::builder().contexts(1).build().unwrap().block_on(async {
        let handle = runtime::current().unwrap();
        // The stack of a thread takes two megabytes.
        let started = with_room_for(1 << 20, || handle.try_pool());
        let error = started.expect_err("no thread has room").to_string();
        assert!(error.starts_with("the thread pool of the runtime could not be started: "), "{error}");
        let pool = handle.try_pool().expect("there is room now");
        run_on(&pool, async { 6 * 7 }).await
    });
    assert_eq!(outcome, Outcome::Value(42));
    println!("{STARTED}");
}

/// Calls `f` while the process may use this many bytes of address space more than it does.
fn with_room_for<T>(bytes: u64, f: impl FnOnce() -> T) -> T {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both limits are valid, and the calls only read and write them.
    unsafe {
        let page: u64 = libc::sysconf(libc::_SC_PAGESIZE).try_into().unwrap();
        assert_eq!(libc::getrlimit(libc::RLIMIT_AS, &raw mut before), 0);
        let tight = libc::rlimit { rlim_cur: pages * page + bytes, ..before };
        assert_eq!(libc::setrlimit(libc::RLIMIT_AS, &raw const tight), 0);
        let result = f();
        assert_eq!(libc::setrlimit(libc::RLIMIT_AS, &raw const before), 0);
        result
    }
}

#[test]
fn a_pool_that_could_not_be_started_is_started_by_a_later_call() {
    let program = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "late_pool::the_program", "--nocapture"])
        .env(ROLE, "")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&program.stdout);
    assert!(program.status.success() && said.contains(STARTED), "{program:?}");
}
