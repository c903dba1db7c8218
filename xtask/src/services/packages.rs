//! The programs that the tests need, and the packages of Debian that have them.

use super::first_of;
use super::servers::{self, Server};
use crate::command::{self, Show};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Time that the package archive may take to answer, and to deliver.
const LIST_LIMIT: Duration = Duration::from_secs(60);
const INSTALL_LIMIT: Duration = Duration::from_secs(240);

/// Starts a server: its program, and a folder for its data.
type Start = fn(&Path, &Path) -> Result<Server, String>;

/// Something that tests need.
pub(super) struct Service {
    pub(super) program: &'static str,
    package: &'static str,
    /// The word by which modules of tests say that they need it.
    pub(super) module: &'static str,
    /// Names the variable with the path of a program that is only called.
    pub(super) variable: &'static str,
    pub(super) start: Option<Start>,
}

impl Service {
    const fn server(
        program: &'static str,
        package: &'static str,
        module: &'static str,
        start: Start,
    ) -> Self {
        Self { program, package, module, variable: "", start: Some(start) }
    }

    const fn tool(program: &'static str, package: &'static str, variable: &'static str) -> Self {
        Self { program, package, module: program, variable, start: None }
    }
}

pub(super) const SERVICES: [Service; 8] = [
    Service::server("postgres", "postgresql", "postgres", servers::postgres),
    Service::server("redis-server", "redis-server", "redis", servers::redis),
    Service::server("nats-server", "nats-server", "nats", servers::nats),
    Service::server("nginx", "nginx-light", "nginx", servers::nginx),
    Service::tool("chromium", "chromium", "CONVOKE_TEST_CHROMIUM"),
    Service::tool("curl", "curl", "CONVOKE_TEST_CURL"),
    Service::tool("wrk", "wrk", "CONVOKE_TEST_WRK"),
    Service::tool("h2load", "nghttp2-client", "CONVOKE_TEST_H2LOAD"),
];

/// The programs, and where they are.
pub(super) struct Programs;

impl Programs {
    /// Looks for the programs, and installs what is missing if it may.
    pub(super) fn find_or_install() -> Self {
        let missing: Vec<_> = SERVICES
            .iter()
            .filter(|service| Self.path(service.program).is_none())
            .map(|it| it.package)
            .collect();
        if missing.is_empty() {
            return Self;
        }
        if let Err(reason) = install(&missing) {
            println!("    {} cannot be installed: {reason}", missing.join(", "));
        }
        Self
    }

    /// Returns the path of a program.
    pub(super) fn path(&self, program: &str) -> Option<PathBuf> {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&folders).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
        // Debian keeps the programs of PostgreSQL beside each other, by version; `initdb` is needed, too.
        if program == "postgres" {
            let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
            let versions = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
            return first_of(
                versions
                    .chain(folders)
                    .filter(|folder| folder.join("initdb").is_file())
                    .map(|it| it.join(program)),
            );
        }
        first_of(folders.map(|folder| folder.join(program)))
    }
}

fn install(packages: &[&str]) -> Result<(), String> {
    let apt = |limit, arguments: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(["-o", "Acquire::http::Timeout=15", "-o", "Acquire::Retries=1", "-qq"]);
        apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        command::run_within(limit, &mut apt, Show::Never).ending
    };
    if servers::own_user() != Some(0) {
        return Err("only root may".to_owned());
    }
    println!("    installs {}", packages.join(", "));
    apt(LIST_LIMIT, &["update"]).map_err(|how| format!("no list of packages ({how})"))?;
    let mut failed = Vec::new();
    // One by one: an archive without one of them has the others.
    for package in packages {
        if let Err(how) = apt(INSTALL_LIMIT, &["install", "-y", "--no-install-recommends", package]) {
            failed.push(format!("{package}: {how}"));
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}
