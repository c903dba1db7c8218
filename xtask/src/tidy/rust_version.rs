//! The oldest Rust we promise to support is said once, in the workspace manifest, and inherited by every crate.

use crate::step::Verdict;
use crate::toolchain::{self, Release};
use crate::workspace::{Package, Workspace};

pub(super) fn check(workspace: &Workspace) -> Verdict {
    let (promised, running) = match (toolchain::promised(workspace), toolchain::running(workspace)) {
        (Ok(promised), Ok(running)) => (promised, running),
        (Err(complaint), _) | (_, Err(complaint)) => return Verdict::failed(complaint),
    };
    let mut findings: Vec<_> = workspace
        .packages
        .iter()
        .filter_map(|package| {
            let manifest = workspace.read(&package.manifest).unwrap_or_default();
            not_inherited(package, &manifest, &promised)
        })
        .collect();
    match Release::parse(&promised) {
        None => findings.push(format!("Cargo.toml: rust-version `{promised}` is not a version")),
        Some(oldest) if running.release < oldest => findings
            .push(format!("this is Rust {}, Convoke needs {promised}: run `rustup update`", running.release)),
        Some(_) => {}
    }
    Verdict::from_findings(findings, format!("Rust {promised} or newer, running {}", running.release))
}

fn not_inherited(package: &Package, manifest: &str, promised: &str) -> Option<String> {
    let inherits = toolchain::value_in_section(manifest, "package", "rust-version.workspace");
    let stated = package.rust_version.as_deref();
    (inherits.as_deref() != Some("true") || stated != Some(promised))
        .then(|| format!("{}: must say `rust-version.workspace = true`", package.manifest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_says_its_own_version_is_found() {
        let package = |version: Option<&str>| Package {
            rust_version: version.map(str::to_owned),
            ..Package::default()
        };
        let inherits = "[package]\nrust-version.workspace = true\n";
        assert_eq!(not_inherited(&package(Some("1.95")), inherits, "1.95"), None);
        let own = "[package]\nrust-version = \"1.95\"\n";
        assert!(not_inherited(&package(Some("1.95")), own, "1.95").is_some());
        assert!(not_inherited(&package(None), "[package]\n", "1.95").is_some());
    }
}
