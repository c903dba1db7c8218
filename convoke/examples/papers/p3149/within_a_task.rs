//! P3149R1 §4.1: work that starts more work in the same scope.
//!
//! The paper's program joins at once: its join may close the scope before the work
//! has spawned into it, and then "Hello world!" is not printed. Here `spawn` would
//! fail, and say why. So this program waits for the result first, which needs no
//! shared variable.

use std::sync::{Arc, Mutex};

use convoke::prelude::*;
use convoke::sender::prelude::*;

pub(crate) fn run() -> String {
    let pool = ThreadPool::new(2).unwrap();
    let (executor, env) = (pool.executor(), Env::from(pool.executor()));
    let (scope, printed) = (CountingScope::new(), Arc::new(Mutex::new(0)));
    let (inside, on_pool, out) = (scope.handle(), env.clone(), printed.clone());
    let val = just_from(move || {
        let val = 13;
        let print = just_from(move || *out.lock().unwrap() = val);
        inside.spawn(print.starts_on(&executor), &on_pool).unwrap();
        val
    });
    let result = scope.spawn_future(val.starts_on(&pool.executor()), &env).unwrap();
    let result = sync_wait(result).unwrap();
    sync_wait(scope.join()).unwrap();
    format!("printed {}, result {result}", printed.lock().unwrap())
}
