//! The workshop: everything that is done to the code, as one program. Run it as `cargo xtask <command>`.
//!
//! `tidy` and `tidy/` check how the code is written, `test` runs all that can be run, `sanitize/` runs it under
//! tools that see undefined behaviour, `fuzz` runs the fuzz targets. All four are lists of steps (`step`). `weigh/` measures
//! what a program pays for Convoke. The other files are what these stand on.

mod arguments;
mod command;
mod cpu_time;
mod executables;
mod fuzz;
mod lexer;
mod models;
mod nextest;
mod sanitize;
mod services;
mod step;
mod tally;
mod test;
mod tidy;
mod toolchain;
mod weigh;
mod workspace;

use arguments::{Arguments, Verb};
use std::process::ExitCode;
use workspace::Workspace;

fn main() -> ExitCode {
    if let Some(code) = weigh::act_as_wrapper() {
        return code;
    }
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(complaint) => {
            eprintln!("{complaint}\n\n{}", arguments::USAGE);
            return ExitCode::from(2);
        }
    };
    match obey(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(complaint) => {
            eprintln!("{complaint}");
            ExitCode::from(2)
        }
    }
}

/// Carries out the command; `Ok(false)` means that a step failed, `Err` that none could be started.
fn obey(arguments: &Arguments) -> Result<bool, String> {
    if arguments.verb == Verb::Help {
        println!("{}", arguments::USAGE);
        return Ok(true);
    }
    let workspace = Workspace::load()?;
    match arguments.verb {
        Verb::Help => Ok(true),
        Verb::Tidy => tidy::run(&workspace, arguments),
        Verb::Test => test::run(&workspace, arguments),
        Verb::Sanitize => sanitize::run(&workspace, arguments),
        Verb::Fuzz => fuzz::run(&workspace, arguments),
        Verb::Weigh => weigh::run(&workspace),
        Verb::Ci => Ok(tidy::run(&workspace, arguments)? && test::run(&workspace, arguments)?),
    }
}
