//! `cargo xtask fuzz`: the fuzz targets with libFuzzer, each for a time. `cargo xtask test` runs them for a moment without it.
//!
//! Inputs that reach new code are kept in `target/fuzz-corpus`; one that makes a target fail in `target/fuzz-artifacts`, and
//! printed with the command that runs it again. Those worth keeping go to `fuzz/seeds`, where the tests find them.

use crate::arguments::Arguments;
use crate::command::{self, Show};
use crate::step::{self, Step, Verdict};
use crate::workspace::Workspace;
use std::fs;

/// The targets, each a folder of `fuzz/seeds`.
const TARGETS: [(&str, &str); 8] = [
    ("addresses", "texts as addresses"),
    ("client", "answers of a server to the client"),
    ("http1", "bytes to the server"),
    ("http2", "frames of HTTP/2 to the server"),
    ("postgres", "messages of PostgreSQL, which say if a transaction is open"),
    ("proxies", "proxies, as the environment names them"),
    ("tls", "TLS over a line that changes what it carries"),
    ("tunnel", "answers of a proxy to CONNECT"),
];

/// The variable with the time for each target, and that time if it is not set.
const SECONDS: &str = "CONVOKE_FUZZ_SECONDS";
const DEFAULT_SECONDS: &str = "60";

/// Runs the targets; true if none failed.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<bool, String> {
    let steps = TARGETS.map(|(name, about)| Step::new(name, about, move || fuzz(workspace, name)));
    let Some(steps) = step::select(steps.into(), arguments)? else { return Ok(true) };
    have_cargo_fuzz(workspace)?;
    Ok(step::run("fuzz", steps))
}

fn have_cargo_fuzz(workspace: &Workspace) -> Result<(), String> {
    let mut question = command::cargo(&workspace.root);
    if command::run(question.args(["fuzz", "--version"]), Show::Never).succeeded() {
        return Ok(());
    }
    println!("cargo-fuzz is missing and will be installed");
    let mut install = command::cargo(&workspace.root);
    let ran = command::run(install.args(["install", "cargo-fuzz", "--locked"]), Show::Live);
    ran.ending.map_err(|how| format!("cargo-fuzz could not be installed ({how})"))
}

fn fuzz(workspace: &Workspace, name: &str) -> Verdict {
    let (corpus, artifacts) =
        (format!("target/fuzz-corpus/{name}"), format!("target/fuzz-artifacts/{name}/"));
    for folder in [&corpus, &artifacts] {
        if let Err(error) = fs::create_dir_all(workspace.root.join(folder)) {
            return Verdict::failed(format!("{folder}: {error}"));
        }
    }
    let seconds = std::env::var(SECONDS).unwrap_or_else(|_| DEFAULT_SECONDS.to_owned());
    let mut command = command::cargo(&workspace.root);
    // AddressSanitizer needs a nightly toolchain. What it would see, `cargo xtask sanitize` sees; here panics are looked for.
    command.args(["fuzz", "run", "--fuzz-dir", "fuzz", "--sanitizer", "none", "--target-dir", "target/fuzz"]);
    command.args(["target", &corpus, &format!("fuzz/seeds/{name}"), "--"]);
    command.args([format!("-max_total_time={seconds}"), format!("-artifact_prefix={artifacts}")]);
    command.args(["-print_final_stats=1", "-timeout=60", "-verbosity=0"]);
    let ran = command::run(command.env("CONVOKE_FUZZ_TARGET", name), Show::OnFailure);
    let executions = ran.stderr.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    match (ran.ending, executions) {
        (Ok(()), Some(executions)) => Verdict::Passed(format!("{} inputs", executions.trim())),
        (Ok(()), None) => Verdict::failed("libFuzzer tells no number of inputs"),
        (Err(how), _) => Verdict::failed(format!("{how}: see {artifacts}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn each_target_has_its_folder_of_seeds() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds");
        let names =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(names, TARGETS.map(|(name, _)| name));
    }
}
