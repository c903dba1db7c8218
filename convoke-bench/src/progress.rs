//! Progress on standard error: a line that changes on a terminal, one line per scenario elsewhere.

use std::io::{IsTerminal, Write};

#[derive(Debug)]
pub(crate) struct Progress {
    manner: Manner,
    scenario: &'static str,
}

#[derive(Debug)]
enum Manner {
    ChangingLine,
    Sparse,
    #[cfg(test)]
    Silent,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let manner = if std::io::stderr().is_terminal() { Manner::ChangingLine } else { Manner::Sparse };
        Self { manner, scenario: "" }
    }

    #[cfg(test)]
    pub(crate) fn silent() -> Self {
        Self { manner: Manner::Silent, scenario: "" }
    }

    /// Starts a scenario.
    pub(crate) fn begin(&mut self, scenario: &'static str) {
        self.scenario = scenario;
        if let Manner::Sparse = self.manner {
            eprintln!("measuring {scenario}");
        }
    }

    /// Shows the next step of a contestant. Called between samples, never inside one.
    pub(crate) fn step(&mut self, peer: &str, what: &str) {
        if let Manner::ChangingLine = self.manner {
            eprint!("\r\x1b[K{}: {peer}, {what}", self.scenario);
            let _ = std::io::stderr().flush();
        }
    }

    /// Ends the scenario, and erases its line before the table is printed.
    pub(crate) fn end(&mut self) {
        if let Manner::ChangingLine = self.manner {
            eprint!("\r\x1b[K");
        }
    }
}
