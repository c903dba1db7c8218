//! Which Rust is here: the one that is running, those that rustup holds, and the oldest one we promise to support.

use crate::command::{self, Show};
use crate::workspace::Workspace;
use std::fmt;
use std::process::Command;

/// A version of Rust. The patch is left out of comparisons where only the release matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Release {
    major: u32,
    minor: u32,
}

impl fmt::Display for Release {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

impl Release {
    /// From `1.95`, `1.95.0` or `1.97.0-nightly`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(['.', '-']);
        Some(Self { major: parts.next()?.parse().ok()?, minor: parts.next()?.parse().ok()? })
    }
}

/// The Rust that compiles for us now.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) release: Release,
    /// The triple of this machine.
    pub(crate) host: String,
}

/// Asks rustc.
pub(crate) fn running(workspace: &Workspace) -> Result<Running, String> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let ran = command::run(rustc.arg("-vV").current_dir(&workspace.root), Show::Never);
    ran.ending.map_err(|how| format!("rustc -vV failed: {how}"))?;
    let field = |name: &str| {
        let value = ran.stdout.lines().find_map(|line| line.strip_prefix(name));
        value.map(str::trim).ok_or_else(|| format!("rustc -vV has no line `{name}`"))
    };
    let version = field("release:")?;
    let release = Release::parse(version).ok_or_else(|| format!("rustc calls itself `{version}`"))?;
    Ok(Running { release, host: field("host:")?.to_owned() })
}

/// The promise: `rust-version` under `[workspace.package]`.
pub(crate) fn promised(workspace: &Workspace) -> Result<String, String> {
    let manifest = workspace.read("Cargo.toml").ok_or("Cargo.toml cannot be read")?;
    value_in_section(&manifest, "workspace.package", "rust-version")
        .map(|value| value.trim_matches('"').to_owned())
        .ok_or_else(|| "Cargo.toml: no rust-version under [workspace.package]".into())
}

/// The first installed toolchain of which `wanted` approves. None without rustup.
pub(crate) fn installed(workspace: &Workspace, wanted: impl Fn(&str) -> bool) -> Option<String> {
    let mut rustup = Command::new("rustup");
    let ran = command::run(rustup.args(["toolchain", "list"]).current_dir(&workspace.root), Show::Never);
    let names = ran.stdout.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|_| ran.succeeded()).find(|name| wanted(name)).map(str::to_owned)
}

/// The value of a key in a section of a manifest, as written, without a comment behind it. Dotted keys are looked up
/// as they are spelled, which is how the house spells them.
pub(crate) fn value_in_section(manifest: &str, section: &str, key: &str) -> Option<String> {
    let mut here = false;
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            here = line == format!("[{section}]");
        } else if here
            && let Some((name, value)) = line.split_once('=')
            && name.trim() == key
        {
            let value = value.split('#').next().unwrap_or_default();
            return Some(value.trim().to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_compare_by_number() {
        let [older, newer] = ["1.9.0", "1.95.0-nightly"].map(|text| Release::parse(text).unwrap());
        assert!(older < newer);
        assert_eq!(newer, Release::parse("1.95").unwrap());
        assert_eq!(Release::parse("nightly-x86_64"), None);
    }

    #[test]
    fn a_key_is_found_only_in_its_section() {
        let manifest = "[package]\nrust-version.workspace = true # said once\n[other]\nname = \"x\"\n";
        assert_eq!(value_in_section(manifest, "package", "rust-version.workspace").as_deref(), Some("true"));
        assert_eq!(value_in_section(manifest, "package", "name"), None);
    }
}
