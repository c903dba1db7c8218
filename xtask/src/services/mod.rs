//! `cargo xtask test --only services`: tests against real servers and with real clients, in the package `services/`.
//!
//! 1. `packages` finds the programs. What is missing is installed as packages of Debian, where that may be done: as root, with a
//!    package archive that answers in time.
//! 2. `servers` starts each server on loopback, with its data in a temporary folder, as a user without rights. Each is ended by its own
//!    process id when its value is dropped.
//! 3. The tests find them through environment variables. Modules of tests are named by what they need, and those whose program is
//!    not there are left out by name, and said so.

mod packages;
mod servers;

use crate::command::{self, Show};
use crate::nextest::{have_nextest, run_nextest};
use crate::step::Verdict;
use crate::tally::Tally;
use crate::workspace::Workspace;
use packages::Programs;
use servers::Server;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time that the registry of crates may take.
const FETCH_LIMIT: Duration = Duration::from_secs(120);

/// The packages, being installed: a download needs little of the processor, so the other steps go on beside it.
pub(crate) struct Installing(JoinHandle<Programs>);

impl Installing {
    /// Starts to look for the programs, and to install what is missing.
    pub(crate) fn start() -> Self {
        Self(thread::spawn(|| if IS_SUPPORTED { Programs::find_or_install() } else { Programs }))
    }

    fn finish(self) -> Programs {
        // After a panic nothing more will be installed; what is there can be used.
        self.0.join().unwrap_or(Programs)
    }
}

/// True where the step runs.
const IS_SUPPORTED: bool = cfg!(target_os = "linux");

/// Runs the step.
pub(crate) fn run(workspace: &Workspace, installing: Installing, tally: &mut Tally) -> Verdict {
    if !IS_SUPPORTED {
        return Verdict::Skipped("the servers are installed and started on Linux only".to_owned());
    }
    if let Err(complaint) = have_nextest(workspace) {
        return Verdict::failed(complaint);
    }
    // Also brings its lock file up to date with the manifests of the workspace.
    let mut fetch = command::cargo(&workspace.root);
    fetch.args(["fetch", "--quiet", "--manifest-path", "services/Cargo.toml"]);
    if !command::run_within(FETCH_LIMIT, &mut fetch, Show::Never).succeeded() {
        return Verdict::Skipped("the crates that the tests need cannot be fetched".to_owned());
    }
    let programs = installing.finish();
    let folder = match Folder::new() {
        Ok(folder) => folder,
        Err(error) => return Verdict::failed(format!("no temporary folder: {error}")),
    };
    let (mut running, mut variables, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for service in packages::SERVICES {
        let Some(path) = programs.path(service.program) else {
            left_out.push((service.module, format!("{} is not installed", service.program)));
            continue;
        };
        let Some(start) = service.start else {
            variables.push((service.variable, path.display().to_string()));
            continue;
        };
        match start(&path, &folder.0) {
            Ok(server) => {
                variables.extend(server.variables.iter().cloned());
                running.push(server);
            }
            Err(complaint) => left_out.push((service.module, complaint)),
        }
    }
    for (module, reason) in &left_out {
        println!("    left out: {module} ({reason})");
    }
    let verdict = run_tests(workspace, tally, &variables, &left_out);
    drop::<Vec<Server>>(running);
    match verdict {
        Verdict::Passed(note) if !left_out.is_empty() => {
            let modules: Vec<_> = left_out.iter().map(|(module, _)| *module).collect();
            Verdict::Passed(format!("{note}; left out: {}", modules.join(", ")))
        }
        verdict => verdict,
    }
}

fn run_tests(
    workspace: &Workspace,
    tally: &mut Tally,
    variables: &[(&'static str, String)],
    left_out: &[(&'static str, String)],
) -> Verdict {
    let mut command = command::cargo(&workspace.root);
    command.args(["nextest", "run", "--no-fail-fast", "--manifest-path", "services/Cargo.toml"]);
    command.args(["--config-file", ".config/nextest.toml", "--target-dir", "target"]);
    if !left_out.is_empty() {
        // A module whose name has that of a missing program in it needs that program.
        let missing = left_out.iter().map(|(module, _)| format!("not test(/^[a-z_]*{module}[a-z_]*::/)"));
        command.args(["-E", &missing.collect::<Vec<_>>().join(" and ")]);
    }
    command.envs(variables.iter().map(|(name, value)| (*name, value)));
    run_nextest(&mut command, tally)
}

/// A temporary folder, removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("convoke-services-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        // The servers run as another user, and make folders of their own in it.
        servers::open_to_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            println!("    {} was not removed: {error}", self.0.display());
        }
    }
}

/// Returns the first of these files that is there.
fn first_of(paths: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    paths.into_iter().find(|path| Path::new(path).is_file())
}
