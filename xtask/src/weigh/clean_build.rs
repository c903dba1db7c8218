//! One build from clean, measured.

use std::fs;
use std::time::Duration;

use super::crate_times::{self, CrateTime};
use super::program::{NAME, Program};
use crate::command::{self, Show};
use crate::cpu_time::CpuTime;

/// A profile of cargo, with its settings untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Profile {
    Debug,
    Release,
}

impl Profile {
    fn folder(self) -> &'static str {
        match self {
            Profile::Debug => "debug",
            Profile::Release => "release",
        }
    }
}

/// The measurements of a build.
#[derive(Debug)]
pub(super) struct Built {
    /// User CPU time of cargo, all compilers, build scripts and linkers.
    pub(super) time: Duration,
    /// The size of the stripped program in bytes.
    pub(super) size: u64,
    pub(super) crates: Vec<CrateTime>,
}

/// Builds the program from clean.
pub(super) fn measure(program: &Program, profile: Profile) -> Result<Built, String> {
    let target = program.folder.join("target");
    if target.exists() {
        fs::remove_dir_all(&target).map_err(|error| format!("{}: {error}", target.display()))?;
    }
    let log = program.folder.join(format!("{}.log", profile.folder()));
    let mut command = program.cargo();
    command.args(["build", "--offline", "--quiet"]).env("CARGO_TARGET_DIR", &target);
    // As a user compiles both libraries, which come from the registry then: cargo compiles packages of the registry
    // without incremental compilation and without lints, but those of a path, as ours are here, with both.
    command.env("CARGO_INCREMENTAL", "0").env("RUSTFLAGS", "--cap-lints=allow");
    if profile == Profile::Release {
        // The linker leaves the symbols out: that costs nothing, and needs no tool that may be missing.
        command.args(["--release", "--config", "profile.release.strip=\"symbols\""]);
    }
    crate_times::record(&mut command, &log)?;
    println!("building the server of {} ({})", program.library, profile.folder());
    let before = CpuTime::of_children();
    command::run(&mut command, Show::OnFailure).ending.map_err(|how| format!("the build failed: {how}"))?;
    let time = CpuTime::of_children().since(before).user;
    let executable = target.join(profile.folder()).join(format!("{NAME}{}", std::env::consts::EXE_SUFFIX));
    let size = fs::metadata(&executable).map_err(|error| format!("{}: {error}", executable.display()))?.len();
    Ok(Built { time, size, crates: crate_times::read(&log)? })
}
