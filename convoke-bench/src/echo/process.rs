//! A process of the bench that plays a role, seen from the one that measures: a line goes in, a line comes out.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::linux;

/// Is ended when this is dropped.
pub(super) struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts what is given, which must lead to this program, in that role.
    pub(super) fn start(command: &mut Command, flag: &str, arguments: &[String]) -> Self {
        command.arg(flag).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("this program can be started again");
        let input = child.stdin.take().expect("its input is a pipe");
        let output = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        Self { child, input, output }
    }

    /// The next line that it says.
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

    /// The number of the process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Has it end, and reads what it has written to standard error, which must be a pipe.
    pub(super) fn end(mut self) -> Option<String> {
        linux::terminate(self.id()).ok()?;
        let mut text = String::new();
        self.child.stderr.take()?.read_to_string(&mut text).ok()?;
        Some(text)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // That it has ended before is no harm.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// This program, to be started again.
pub(super) fn this_program() -> Command {
    Command::new(std::env::current_exe().expect("this program has a path"))
}
