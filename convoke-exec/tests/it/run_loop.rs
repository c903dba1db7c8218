//! Promises of a run loop beyond the contract of every executor.
use std::sync::{Arc, Mutex};

use convoke_core::Executor;
use convoke_exec::RunLoop;
use convoke_testing::runnable;

#[test]
fn posts_of_one_thread_run_in_order_even_from_inside_another_loop() {
    let run_loop = RunLoop::new();
    let (executor, order) = (run_loop.executor(), Arc::new(Mutex::new(Vec::new())));
    let piece = {
        let order = order.clone();
        move |number| {
            let order = order.clone();
            runnable(move |_| order.lock().unwrap().push(number))
        }
    };
    executor.post(runnable({
        let executor = executor.clone();
        move |_| {
            executor.post(piece(1));
            let inner = RunLoop::new();
            inner.executor().post(runnable({
                let (executor, piece) = (executor.clone(), piece.clone());
                move |_| executor.post(piece(2))
            }));
            inner.run_ready();
            executor.post(piece(3));
        }
    }));
    run_loop.run_ready();
    assert_eq!(*order.lock().unwrap(), [1, 2, 3]);
}
