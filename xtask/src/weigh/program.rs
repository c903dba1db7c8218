//! The two programs: README's server, and its twin for tokio. Each is a package of its own below `target/weigh`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::command::{self, Show};
use crate::workspace::Workspace;

/// The name of both programs.
pub(super) const NAME: &str = "server";

/// The line of README by which its server is found.
const MARK: &str = "serve(\"";

/// A package that is ready to be built.
#[derive(Debug)]
pub(super) struct Program {
    /// The library that it uses.
    pub(super) library: &'static str,
    pub(super) folder: PathBuf,
}

impl Program {
    /// Writes the packages for Convoke and for tokio.
    pub(super) fn write_both(workspace: &Workspace) -> Result<[Self; 2], String> {
        let readme = workspace.read("README.md").ok_or("README.md cannot be read")?;
        let server = server_of(&readme).ok_or_else(|| format!("README.md has no server with `{MARK}`"))?;
        let facade = workspace.root.join("convoke");
        let convoke = format!(
            "convoke = {{ path = {:?}, default-features = false, features = [\"net\", \"macros\"] }}",
            facade.display().to_string()
        );
        let twin = include_str!("../../weigh/tokio_server.rs");
        let tokio = "tokio = { version = \"1\", features = [\"full\"] }";
        Ok([
            Self::write(workspace, "convoke", &convoke, &server)?,
            Self::write(workspace, "tokio", tokio, twin)?,
        ])
    }

    fn write(
        workspace: &Workspace,
        library: &'static str,
        dependency: &str,
        source: &str,
    ) -> Result<Self, String> {
        let folder = workspace.root.join("target/weigh").join(library);
        // A workspace of its own: our profiles and our lints are not those of a user.
        let manifest = format!(
            "[workspace]\n\n[package]\nname = \"{NAME}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
             [dependencies]\n{dependency}\n"
        );
        // The versions that we test with, and not the newest.
        let lock = workspace.read("Cargo.lock").ok_or("Cargo.lock cannot be read")?;
        let files = [("Cargo.toml", &*manifest), ("Cargo.lock", &*lock), ("src/main.rs", source)];
        for (name, text) in files {
            let path = folder.join(name);
            let written = fs::create_dir_all(path.parent().unwrap_or(&folder));
            written
                .and_then(|()| fs::write(&path, text))
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(Self { library, folder })
    }

    /// Returns a cargo command in the package.
    pub(super) fn cargo(&self) -> Command {
        command::cargo(&self.folder)
    }

    /// Downloads what it needs, so that no download is measured.
    pub(super) fn fetch(&self) -> Result<(), String> {
        let ran = command::run(self.cargo().arg("fetch"), Show::OnFailure);
        ran.ending.map_err(|how| format!("the dependencies of {} are not there: {how}", self.library))
    }
}

/// Returns the code block of README that has the mark, as a program.
fn server_of(readme: &str) -> Option<String> {
    let blocks = readme.split("```rust,no_run\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.into_iter().find(|block| block.contains(MARK)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_found_among_the_blocks() {
        let server = format!("async fn main() {{\n    {MARK}\n}}\n");
        let readme =
            format!("```rust,no_run\nfn other() {{}}\n```\ntext\n```rust,no_run\n{server}```\nmore\n");
        assert_eq!(server_of(&readme), Some(server));
        assert_eq!(server_of("```rust\nfn other() {}\n```\n"), None);
    }

    #[test]
    fn readme_has_the_server() {
        let server = server_of(include_str!("../../../README.md"));
        assert!(server.is_some_and(|server| server.contains("#[convoke::main]")));
    }
}
