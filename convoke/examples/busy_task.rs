//! A task that computes without an `await` holds its thread. The diagnosis names it while it does, and says where it was started;
//! the tasks that were queued behind it run on the other thread.
//!
//! ```text
//! cargo run --release --example busy_task --features diagnosis,pool
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use convoke::inspect::{Diagnosis, Finding};
use convoke::prelude::*;

/// Tasks that are started by the busy task, on its own thread.
const OTHERS: usize = 100;

fn main() {
    let (tell, told) = channel();
    let is_named = Arc::new(AtomicBool::new(false));
    let names = is_named.clone();
    let diagnosing = Diagnosis::new()
        .stall_limit(Duration::from_millis(20))
        .report(move |finding| {
            names.store(true, Ordering::Release);
            drop(tell.send((matches!(finding, Finding::Stall(_)), finding.to_string())));
        })
        .start()
        .expect("there is a thread for it");
    let pool = ThreadPool::new(2).expect("there are threads for it");
    let went_on = Arc::new(AtomicUsize::new(0));
    let counted = went_on.clone();
    let program = async move {
        scope(async |s| {
            let siblings = s.clone();
            s.named("busy").spawn(async move {
                for _ in 0..OTHERS {
                    let counted = counted.clone();
                    siblings.spawn(async move {
                        checkpoint().await;
                        counted.fetch_add(1, Ordering::Release);
                    });
                }
                // It computes until it was named, and all others have ended meanwhile.
                while !is_named.load(Ordering::Acquire) || counted.load(Ordering::Acquire) < OTHERS {
                    std::hint::spin_loop();
                }
            });
        })
        .await;
    };
    launch(&pool.executor()).name("program").start(program).wait().unwrap();
    let (is_stall, report) = told.recv().expect("it was named");
    println!("{report}\n");
    println!("{} tasks behind it have ended before it", went_on.load(Ordering::Acquire));
    assert!(is_stall && report.contains("`busy`"), "{report}");
    drop(diagnosing);
}
