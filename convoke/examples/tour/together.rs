//! `when_all` on a pool; the first error asks the others to stop, waits for them, and is the outcome.

use std::sync::Mutex;
use std::time::Instant;

use convoke::prelude::*;
use convoke::sender::prelude::*;

pub(crate) fn show() {
    let pool = ThreadPool::builder().threads(2).name("worker").build().expect("two threads");
    let executor = pool.executor();
    let part = |name: &'static str| {
        schedule(&executor).then(move |()| {
            let thread = std::thread::current();
            format!("{name} on {}", thread.name().unwrap_or("?"))
        })
    };
    let (a, b, c) = sync_wait(when_all((part("price"), part("stock"), part("tax")))).unwrap();
    println!("   three parts, one result:  {a}, {b}, {c}");

    let begin = Instant::now();
    let story = Mutex::new(Vec::new());
    let tell = |line: &'static str| story.lock().unwrap().push((begin.elapsed(), line));
    let (tell_waits, tell_fails) = (&tell, &tell);
    let patient = never::<u32>().may_fail().let_stopped(move || {
        tell_waits("the patient one hears of it, and cleans up");
        just_stopped().may_fail()
    });
    let failing = schedule(&executor).may_fail().let_value(move |()| {
        tell_fails("the other one fails");
        just_error::<u32, _>("out of stock")
    });
    let outcome = sync_wait(when_all((patient, failing)));
    tell("when_all ends");
    for (when, line) in story.lock().unwrap().iter() {
        println!("   {when:>9.1?}  {line}");
    }
    println!("   the outcome:  {outcome:?}");
}
