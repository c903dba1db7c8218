//! Where cargo put the programs it built: read from its own messages, so that no directory layout is assumed.

use crate::command::{self, Show};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that cargo built.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Executable {
    /// The name of the target: an example, a test file, a binary.
    pub(crate) name: String,
    /// The folder of its package, which has the name of the package.
    pub(crate) folder: String,
    pub(crate) path: PathBuf,
}

/// Runs a `cargo build` or `cargo test --no-run` and returns what came out, in the order of their names.
pub(crate) fn build(command: &mut Command) -> Result<Vec<Executable>, String> {
    let ran = command::run(command.arg("--message-format=json-render-diagnostics"), Show::LiveErrors);
    ran.ending.map_err(|how| format!("the build failed: {how}"))?;
    Ok(from_messages(&ran.stdout))
}

fn from_messages(messages: &str) -> Vec<Executable> {
    let mut executables: Vec<_> = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact")
        .filter_map(|message| {
            let path = message["executable"].as_str()?.into();
            let manifest = Path::new(message["manifest_path"].as_str().unwrap_or_default());
            let folder = manifest.parent().and_then(Path::file_name).unwrap_or_default();
            let name = message["target"]["name"].as_str()?.to_owned();
            Some(Executable { name, folder: folder.to_string_lossy().into_owned(), path })
        })
        .collect();
    executables.sort_by(|one, other| (&one.name, &one.path).cmp(&(&other.name, &other.path)));
    executables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_artifacts_with_an_executable_count() {
        let messages = r#"
            {"reason":"compiler-artifact","manifest_path":"/a/b/Cargo.toml","target":{"name":"hello"},"executable":"/x/hello"}
            {"reason":"compiler-artifact","target":{"name":"library"},"executable":null}
            {"reason":"build-finished","success":true}
            not JSON at all"#;
        let expected = Executable { name: "hello".into(), folder: "b".into(), path: "/x/hello".into() };
        assert_eq!(from_messages(messages), [expected]);
    }
}
