//! Supervision of a program: SIGINT and SIGTERM ask it to stop; the end of the grace period, or a later
//! signal, ends it hard. A thread of its own does that, since a program that hangs may hang in its context.

use core::panic::Location;
use core::time::Duration;
use std::io;
use std::process;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use convoke_core::env::Changes;
use convoke_core::raw::sync::Mutex;
use convoke_core::{Panic, StopReason, StopSource};
use convoke_exec::raw::start_thread;
use convoke_inspect::tree::{TaskState, tree};
use convoke_net::signal::{Signal, SignalService, Signals};
use convoke_task::raw::block_on_boxed;
use convoke_task::timeout;

use super::{ENDED_HARD, Runtime};

/// The default interval after the first SIGINT or SIGTERM in which further ones are ignored. `timeout`, shells
/// and supervisors signal a process and its group, so that one request arrives as several signals; people
/// press Ctrl-C twice. A signal that comes later ends the process hard.
pub const SECOND_SIGNAL_AFTER: Duration = Duration::from_secs(1);

/// The limits of a program that was asked to stop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) grace: Duration,
    pub(super) second_signal_after: Duration,
}

/// Stops the program by signals for as long as it exists.
pub(super) struct Supervision {
    over: StopSource,
    program: Arc<Program>,
    supervisor: Option<JoinHandle<()>>,
}

/// The supervised program, as both threads see it.
struct Program {
    source: StopSource,
    location: &'static Location<'static>,
    /// Where its first task waited when it was asked to stop.
    waited: Mutex<Option<String>>,
}

impl Supervision {
    /// Begins to listen for signals. If the system does not allow that, prints so, and the program goes on
    /// without. `location` is that of the program's first task.
    pub(super) fn begin(
        runtime: &Runtime,
        source: StopSource,
        limits: Limits,
        location: &'static Location<'static>,
    ) -> Self {
        let over = StopSource::new();
        let program = Arc::new(Program { source, location, waited: Mutex::new(None) });
        let supervised = program.clone();
        let supervisor = listen(runtime).and_then(|signals| {
            let token = over.token();
            let supervise = move || {
                let mut why = None;
                let supervising =
                    Box::pin(async { why = Some(supervise(signals, &supervised, limits).await) });
                // A stop means that the program has ended.
                _ = block_on_boxed(None, Changes::new().stop_token(token), supervising);
                // Ended from here, and not inside: the task of the supervisor is not to be listed.
                if let Some(why) = why {
                    end_hard(&why);
                }
            };
            start_thread("convoke-supervisor".into(), None, Box::new(supervise))
        });
        if let Err(error) = &supervisor {
            eprintln!("convoke: signals will not stop the program: {error}");
        }
        Self { over, program, supervisor: supervisor.ok() }
    }

    /// Takes the description of where the program waited when it was asked to stop.
    pub(super) fn waited(&self) -> Option<String> {
        self.program.waited.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Supervision {
    fn drop(&mut self) {
        self.over.request_stop(StopReason::Requested);
        if let Some(supervisor) = self.supervisor.take() {
            _ = supervisor.join();
        }
    }
}

impl Program {
    /// Describes where the first task waits, and how many tasks there are beside it.
    fn describe(&self) -> Option<String> {
        let tree = tree();
        let first = tree.roots().find(|task| task.location() == self.location)?;
        let from_first = tree.tasks().skip_while(|task| task.address() != first.address());
        let others = from_first.skip(1).take_while(|task| task.depth() > first.depth()).count();
        let state = match first.state() {
            TaskState::Waits(Some(location)) => format!("it waited at {location}"),
            TaskState::Waits(None) => "it waited for a future that is not Convoke's".to_owned(),
            _ => "it was running".to_owned(),
        };
        Some(match others {
            0 => state,
            1 => format!("{state}, with 1 other task"),
            others => format!("{state}, with {others} other tasks"),
        })
    }
}

/// Subscribes through the service that the program's own tasks use. It is created first, so it ends last.
fn listen(runtime: &Runtime) -> io::Result<Signals> {
    let services = runtime.contexts()[0].services();
    services.use_service::<SignalService>().subscribe([Signal::INTERRUPT, Signal::TERMINATE])
}

/// Asks the program to stop at the first signal. Returns the reason to end it hard, if there is one.
async fn supervise(mut signals: Signals, program: &Program, limits: Limits) -> String {
    let first = signals.next().await;
    let waited = program.describe();
    *program.waited.lock().unwrap_or_else(PoisonError::into_inner) = waited;
    let asked = Instant::now();
    // The panic hook has reported a panic of a stop callback.
    let _ = Panic::catch(|| program.source.request_stop(StopReason::Signal(first.number())));
    let second = async {
        loop {
            let signal = signals.next().await;
            // An earlier one belongs to the first.
            if asked.elapsed() >= limits.second_signal_after {
                return signal;
            }
        }
    };
    match timeout(limits.grace, second).await {
        Ok(second) => format!("{second} came after {first}, and not everything had ended"),
        Err(_) => format!("not everything had ended {:?} after {first}", limits.grace),
    }
}

fn end_hard(why: &str) -> ! {
    eprintln!("convoke: ended hard: {why}. Still running:\n{}", tree());
    process::exit(i32::from(ENDED_HARD))
}
