//! Resources that log what happens to them, and functions that run their users.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock};

use convoke::cleanup::set_cleanup_hook;
use convoke::env::Changes;
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::stopped;
use convoke::{Never, Panic};

/// Log of events, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Logs the drop of the frame that it is in.
pub(crate) struct Frame(pub(crate) Log);

impl Drop for Frame {
    fn drop(&mut self) {
        self.0.add("frame dropped");
    }
}

#[derive(Debug, PartialEq)]
pub(crate) struct Refused(pub(crate) &'static str);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Refused {}

/// Action of a close after its checkpoint.
#[derive(Clone, Copy)]
pub(crate) enum Then {
    Well,
    Fail,
    Panic,
    Stop,
}

pub(crate) struct Door {
    pub(crate) name: &'static str,
    pub(crate) log: Log,
    pub(crate) then: Then,
}

impl Door {
    pub(crate) fn new(name: &'static str, log: &Log) -> Self {
        Self::with(name, log, Then::Well)
    }

    pub(crate) fn with(name: &'static str, log: &Log, then: Then) -> Self {
        Self { name, log: log.clone(), then }
    }
}

impl AsyncClose for Door {
    type Error = Refused;

    async fn close(self, exit: Exit) -> Result<(), Refused> {
        self.log.add(format!("{} closes: {exit}", self.name));
        checkpoint().await;
        match self.then {
            Then::Well => {}
            Then::Fail => return Err(Refused(self.name)),
            Then::Panic => panic!("{} broke", self.name),
            Then::Stop => stopped().await,
        }
        self.log.add(format!("{} closed", self.name));
        Ok(())
    }
}

/// A resource whose close cannot fail.
pub(crate) struct Gate(pub(crate) Log);

impl AsyncClose for Gate {
    type Error = Never;

    async fn close(self, exit: Exit) -> Result<(), Never> {
        self.0.add(format!("gate closes: {exit}"));
        Ok(())
    }
}

/// A resource that borrows, and whose close borrows as well.
pub(crate) struct Hatch<'a>(pub(crate) &'a Log);

impl AsyncClose for Hatch<'_> {
    type Error = Refused;

    async fn close(self, exit: Exit) -> Result<(), Refused> {
        checkpoint().await;
        self.0.add(format!("hatch closes: {exit}"));
        Ok(())
    }
}

/// Returns the problems that were reported in this process and contain `of`, such as the name of a type.
pub(crate) fn problems(of: &str) -> Vec<String> {
    static PROBLEMS: OnceLock<Log> = OnceLock::new();
    let problems = PROBLEMS.get_or_init(|| {
        let log = Log::default();
        let other = log.clone();
        set_cleanup_hook(move |problem| other.add(problem.to_string()));
        log
    });
    problems.lines().into_iter().filter(|line| line.contains(of)).collect()
}

/// Wraps a door in a type of the test's own, whose name is in reports.
macro_rules! door_named {
    ($name:ident) => {
        struct $name($crate::cleanup::resources::Door);

        impl AsyncClose for $name {
            type Error = Refused;

            async fn close(self, exit: Exit) -> Result<(), Refused> {
                self.0.close(exit).await
            }
        }
    };
}

/// Runs a future in a task that was asked to stop before its first poll. It stops at its first checkpoint.
pub(crate) fn asked_to_stop<F: Future + Send>(future: F) -> Outcome<F::Output>
where
    F::Output: Send,
{
    let source = StopSource::new();
    source.request_stop(StopReason::Named("enough"));
    sync_wait_with(Changes::new().stop_token(source.token()), task(future))
}

/// Runs a future as a task. Returns its outcome, or the message of its panic.
pub(crate) fn caught<F: Future + Send>(future: F) -> Result<Outcome<F::Output>, String>
where
    F::Output: Send,
{
    Panic::catch(|| sync_wait(task(future))).map_err(|panic| panic.message().to_owned())
}

pub(crate) use door_named;
