//! SIGINT and SIGTERM: the first asks the program to stop, a second one or the end of the grace period ends it hard. That is done by
//! a thread of its own, for a program that hangs may hang in its context.

use core::time::Duration;
use std::io;
use std::process;
use std::thread::{self, JoinHandle};

use convoke_core::env::Changes;
use convoke_core::{Outcome, Panic, StopReason, StopSource};
use convoke_inspect::tree;
use convoke_net::signal::{Signal, SignalService, Signals};
use convoke_task::{block_on_with, timeout};

use super::{ENDED_HARD, Runtime};

/// As long as this is there, the program is asked to stop by signals.
pub(super) struct Supervision {
    over: StopSource,
    supervisor: Option<JoinHandle<()>>,
}

impl Supervision {
    /// Listens from now on. If the system will not have that, it says so and the program goes on without.
    pub(super) fn begin(runtime: &Runtime, source: StopSource, grace: Duration) -> Self {
        let over = StopSource::new();
        let supervisor = listen(runtime).and_then(|signals| {
            let token = over.token();
            let thread = thread::Builder::new().name("convoke-supervisor".into());
            thread.spawn(move || {
                let supervising = supervise(signals, source, grace);
                // Ended hard from here, where no task of ours runs that would be named, too.
                if let Outcome::Value(why) = block_on_with(Changes::new().stop_token(token), supervising) {
                    end_hard(&why);
                }
            })
        });
        if let Err(error) = &supervisor {
            eprintln!("convoke: signals will not be heard: {error}");
        }
        Self { over, supervisor: supervisor.ok() }
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

/// By the service that the program's own tasks use: made first, it ends last.
fn listen(runtime: &Runtime) -> io::Result<Signals> {
    let services = runtime.contexts()[0].services();
    services.use_service::<SignalService>().subscribe([Signal::INTERRUPT, Signal::TERMINATE])
}

/// Says why the program has to end hard, if it has.
async fn supervise(mut signals: Signals, source: StopSource, grace: Duration) -> String {
    let first = signals.next().await.number();
    // What a callback throws has been reported by the panic hook.
    let _ = Panic::catch(|| source.request_stop(StopReason::Signal(first)));
    match timeout(grace, signals.next()).await {
        Ok(second) => format!("a second signal ({}) came before all had ended", second.number()),
        Err(_) => format!("not all had ended {} seconds after signal {first}", grace.as_secs()),
    }
}

fn end_hard(why: &str) -> ! {
    eprintln!("convoke: ended hard: {why}. Still running:\n{}", tree());
    process::exit(i32::from(ENDED_HARD))
}
