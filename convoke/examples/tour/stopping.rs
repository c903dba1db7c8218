//! A race: the loser is asked to stop, unwinds in order, and only then is there a result.

use std::sync::Mutex;

use convoke::sender::prelude::*;

pub(crate) fn show() {
    let story = Mutex::new(Vec::new());
    let tell = |line: String| story.lock().unwrap().push(line);
    let tell = &tell;

    // A connection that is opened, used for ever, and closed whatever happens.
    let session = |name: &'static str| {
        just_from(move || tell(format!("{name}: connected")))
            .let_value(|()| never::<&str>())
            .finally(just_from(move || tell(format!("{name}: flushed"))))
            .finally(just_from(move || tell(format!("{name}: closed"))))
    };
    let answer = just_from(move || {
        tell("cache: answers".to_string());
        "from the cache"
    });

    let winner = sync_wait(when_any((session("server A"), session("server B"), answer)));
    tell(format!("the race is over: {winner:?}"));
    for line in story.lock().unwrap().iter() {
        println!("   {line}");
    }

    // The same by hand, with a reason that can be asked for.
    let program = StopSource::new();
    let request = program.token().child();
    program.request_stop(StopReason::Signal(15));
    println!("   why the request stopped:  {}", request.token().reason().expect("it was stopped"));
}
