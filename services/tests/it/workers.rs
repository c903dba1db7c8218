//! Processes of workers: started, killed, asked to end.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A process of a worker. It is killed when it is dropped.
pub(crate) struct Worker(Child);

impl Worker {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::piped()).spawn().unwrap())
    }

    /// Ends it at once (SIGKILL).
    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Asks it to end (SIGTERM).
    pub(crate) fn terminate(&self) {
        let sent = Command::new("kill").args(["-s", "TERM", &self.0.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for its end. Returns what it has printed.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let mut output = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        (self.0.wait().unwrap(), output)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a condition holds that other processes bring about.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} did not happen within a minute");
        sleep(Duration::from_millis(5));
    }
}
