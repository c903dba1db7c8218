//! A process of the benchmark with a role, seen from the one that measures: one line in, one line out.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::linux;

/// A process that is killed when this is dropped.
pub(super) struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts `command`, which must run this program, in that role.
    pub(super) fn start(command: &mut Command, flag: &str, arguments: &[String]) -> Self {
        command.arg(flag).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("this program can be started again");
        let input = child.stdin.take().expect("its input is a pipe");
        let output = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        Self { child, input, output }
    }

    /// Returns the next line of its output.
    pub(super) fn answer(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a process of the bench writes text");
        assert!(line.ends_with('\n'), "a process of the bench has ended too early");
        line.truncate(line.len() - 1);
        line
    }

    pub(super) fn ask(&mut self, question: &str) -> String {
        writeln!(self.input, "{question}").expect("a process of the bench listens");
        self.answer()
    }

    /// Returns the id of the process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Terminates it, and returns what it has written to standard error, which must be a pipe.
    pub(super) fn end(mut self) -> Option<String> {
        linux::terminate(self.id()).ok()?;
        let mut text = String::new();
        self.child.stderr.take()?.read_to_string(&mut text).ok()?;
        Some(text)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended before, which is no error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a command that starts this program again.
pub(super) fn this_program() -> Command {
    Command::new(std::env::current_exe().expect("this program has a path"))
}
