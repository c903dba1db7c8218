//! Running a program: shown as it goes or only if it fails, its output kept, with a time limit if it might hang.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Part of a program's output that is shown, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    /// Everything, while it runs.
    Live,
    /// Standard error while it runs; standard output is for us (cargo's messages as JSON).
    LiveErrors,
    /// All of it afterwards, and only if the program failed.
    OnFailure,
    /// Nothing: we only ask the program a question.
    Never,
}

/// A program that has ended, or could not be started.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// `Err` says in words how it went wrong.
    pub(crate) ending: Result<(), String>,
}

impl Ran {
    pub(crate) fn succeeded(&self) -> bool {
        self.ending.is_ok()
    }
}

/// The cargo that is running us, in the root of the workspace.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// The cargo of another installed toolchain.
pub(crate) fn cargo_of(toolchain: &str, root: &Path) -> Command {
    let mut command = Command::new("rustup");
    // An inherited CARGO would hand the children of the other cargo back to ours.
    command.args(["run", toolchain, "cargo"]).env_remove("CARGO").current_dir(root);
    command
}

/// Runs it to its end.
pub(crate) fn run(command: &mut Command, show: Show) -> Ran {
    start(command, show, None)
}

/// Runs it, but kills it after `limit`: for programs of ours that might hang.
pub(crate) fn run_within(limit: Duration, command: &mut Command, show: Show) -> Ran {
    start(command, show, Some(limit))
}

/// A program that runs beside the next ones. Its output is kept.
pub(crate) struct Background {
    spelled: String,
    started: Result<Child, String>,
    output: [Option<JoinHandle<String>>; 2],
}

/// Starts it, and returns at once.
pub(crate) fn run_in_background(command: &mut Command) -> Background {
    let spelled = spelled(command);
    let mut started = spawn(command);
    let output = match &mut started {
        Ok(child) => {
            let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
            [thread::spawn(move || collect(stdout, false)), thread::spawn(move || collect(stderr, false))]
                .map(Some)
        }
        Err(_) => [None, None],
    };
    Background { spelled, started, output }
}

impl Background {
    /// Waits for its end. Shows its output if it failed.
    pub(crate) fn finish(self) -> Ran {
        println!("$ {}", self.spelled);
        // The pipes end with the program; its CPU time counts from here, where it is waited for.
        let [stdout, stderr] =
            self.output.map(|thread| thread.and_then(|thread| thread.join().ok()).unwrap_or_default());
        let ending = self.started.and_then(|mut child| wait(&mut child, None));
        if ending.is_err() {
            print!("{stdout}{stderr}");
        }
        Ran { stdout, stderr, ending }
    }
}

fn spawn(command: &mut Command) -> Result<Child, String> {
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let program = command.get_program().to_string_lossy();
    spawned.map_err(|error| format!("`{program}` could not be started: {error}"))
}

fn start(command: &mut Command, show: Show, limit: Option<Duration>) -> Ran {
    if matches!(show, Show::Live | Show::LiveErrors) {
        println!("$ {}", spelled(command));
    }
    let mut child = match spawn(command) {
        Ok(child) => child,
        Err(complaint) => {
            return Ran { stdout: String::new(), stderr: String::new(), ending: Err(complaint) };
        }
    };
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (ending, stdout, stderr) = thread::scope(|scope| {
        let stdout = scope.spawn(move || collect(stdout, show == Show::Live));
        let stderr = scope.spawn(move || collect(stderr, matches!(show, Show::Live | Show::LiveErrors)));
        let ending = wait(&mut child, limit);
        (ending, stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default())
    });
    if show == Show::OnFailure && ending.is_err() {
        println!("$ {}\n{stdout}{stderr}", spelled(command));
    }
    Ran { stdout, stderr, ending }
}

/// Reads to the end, line by line, passing each on to our standard output if it is to be seen.
fn collect(from: Option<impl Read>, seen: bool) -> String {
    let mut all = String::new();
    let Some(from) = from else { return all };
    let mut lines = BufReader::new(from);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
        let text = String::from_utf8_lossy(&line);
        if seen {
            // A reader that went away is no reason to stop working.
            let _ = std::io::stdout().write_all(text.as_bytes());
        }
        all.push_str(&text);
        line.clear();
    }
    all
}

fn wait(child: &mut Child, limit: Option<Duration>) -> Result<(), String> {
    let describe = |status: ExitStatus| if status.success() { Ok(()) } else { Err(status.to_string()) };
    let Some(limit) = limit else {
        return child.wait().map_err(|error| error.to_string()).and_then(describe);
    };
    let deadline = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return describe(status),
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(10)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("still running after {} s, killed", limit.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// The command as one could type it.
fn spelled(command: &Command) -> String {
    let mut words = Vec::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            words.push(format!("{}={}", name.to_string_lossy(), quoted(&value.to_string_lossy())));
        }
    }
    let program = Path::new(command.get_program());
    words.push(program.file_name().unwrap_or(command.get_program()).to_string_lossy().into_owned());
    words.extend(command.get_args().map(|word| quoted(&word.to_string_lossy())));
    words.join(" ")
}

fn quoted(word: &str) -> String {
    if word.contains([' ', '*', '\'', '"']) { format!("'{word}'") } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_could_type_it() {
        let mut command = Command::new("/usr/bin/cargo");
        command.args(["test", "--test", "loom_*"]).env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(spelled(&command), "RUSTDOCFLAGS='-D warnings' cargo test --test 'loom_*'");
    }

    #[cfg(unix)]
    #[test]
    fn a_program_in_the_background_is_awaited_with_its_output() {
        let run = |script: &str| run_in_background(Command::new("sh").args(["-c", script])).finish();
        let ran = run("echo out; echo err >&2");
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.succeeded()), ("out\n", "err\n", true));
        assert!(!run("exit 3").succeeded());
        let missing = run_in_background(&mut Command::new("no-such-program-here")).finish();
        assert!(missing.ending.unwrap_err().contains("`no-such-program-here`"));
    }

    #[test]
    fn a_missing_program_is_named() {
        let ran = run(&mut Command::new("no-such-program-here"), Show::Never);
        assert!(ran.ending.unwrap_err().contains("`no-such-program-here`"));
    }
}
