//! The CPU time of each crate of a build. cargo is told to call xtask instead of rustc (`RUSTC_WRAPPER`); xtask runs rustc, and adds a
//! line with its CPU time to a log. `cargo build --timings` reports wall time only, which a busy machine spoils.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use crate::cpu_time::CpuTime;

/// The variable that names the log. If it is set, xtask is a wrapper of rustc.
const LOG: &str = "CONVOKE_WEIGH_LOG";

/// A crate, and the user CPU time of its compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CrateTime {
    pub(super) name: String,
    pub(super) time: Duration,
}

/// Makes a cargo command record the time of each crate in `log`.
pub(super) fn record(command: &mut Command, log: &Path) -> Result<(), String> {
    let this =
        std::env::current_exe().map_err(|error| format!("xtask does not know where it is: {error}"))?;
    // Whatever was there is of an earlier build.
    let _ = fs::remove_file(log);
    command.env("RUSTC_WRAPPER", this).env(LOG, log);
    Ok(())
}

/// Reads what was recorded. Build scripts are no crates, and neither are cargo's questions to the compiler.
pub(super) fn read(log: &Path) -> Result<Vec<CrateTime>, String> {
    let text = fs::read_to_string(log).map_err(|error| format!("{}: {error}", log.display()))?;
    Ok(parse(&text))
}

fn parse(text: &str) -> Vec<CrateTime> {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let crates = lines.filter_map(|(name, micros)| {
        let time = Duration::from_micros(micros.parse().ok()?);
        (!name.starts_with("build_script") && name != "___").then(|| CrateTime { name: name.into(), time })
    });
    crates.collect()
}

/// If cargo has called xtask instead of rustc, runs rustc and returns its exit code.
pub(crate) fn act_as_wrapper() -> Option<ExitCode> {
    let log = std::env::var_os(LOG)?;
    let mut words = std::env::args_os().skip(1);
    let rustc = words.next()?;
    let words: Vec<_> = words.collect();
    let status = Command::new(rustc).args(&words).status();
    if let Some(name) = crate_name(&words) {
        let line = format!("{name} {}\n", CpuTime::of_children().user.as_micros());
        // One write for a line: several wrappers run at once.
        let opened = OpenOptions::new().append(true).create(true).open(log);
        if let Err(error) = opened.and_then(|mut log| log.write_all(line.as_bytes())) {
            eprintln!("xtask could not record the time of {name}: {error}");
        }
    }
    let code = status.ok().and_then(|status| status.code()).and_then(|code| u8::try_from(code).ok());
    Some(ExitCode::from(code.unwrap_or(1)))
}

fn crate_name(words: &[OsString]) -> Option<String> {
    let at = words.iter().position(|word| word == "--crate-name")?;
    words.get(at + 1)?.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_read_without_build_scripts() {
        let crates = parse("libc 1500000\nbuild_script_build 7\n___ 3\nnonsense\nserver x\n");
        assert_eq!(crates, [CrateTime { name: "libc".into(), time: Duration::from_millis(1500) }]);
    }

    #[test]
    fn rustc_is_told_the_name_of_the_crate() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(crate_name(&words("--crate-name libc src/lib.rs")).as_deref(), Some("libc"));
        assert_eq!(crate_name(&words("-vV")), None);
    }
}
