//! The workspace: the packages as cargo sees them, the files as git sees them.

use crate::command::{self, Show};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The whole project.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) packages: Vec<Package>,
    /// The tracked files, relative to the root, with `/` between their parts, sorted.
    pub(crate) files: Vec<String>,
}

/// One crate of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Its manifest, relative to the root.
    pub(crate) manifest: String,
    pub(crate) rust_version: Option<String>,
    /// Built when nothing else is asked for.
    pub(crate) is_default: bool,
    pub(crate) features: Vec<String>,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

/// An arrow from a package to another.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: DependencyKind,
}

/// When a dependency is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DependencyKind {
    Normal,
    Build,
    Dev,
}

/// One thing that is compiled: a library, a test file, an example.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kinds: Vec<String>,
}

impl Workspace {
    /// Asks cargo and git.
    pub(crate) fn load() -> Result<Self, String> {
        // Asked at run time: two checkouts that share a target directory may share this program too.
        let own = std::env::var_os("CARGO_MANIFEST_DIR").ok_or("start this as `cargo xtask`")?;
        // From the root: asked inside a member, cargo takes that member alone for the default.
        let mut question = command::cargo(&Path::new(&own).join(".."));
        question.args(["metadata", "--format-version", "1", "--no-deps"]);
        let ran = command::run(&mut question, Show::Never);
        if let Err(how) = ran.ending {
            return Err(format!("cargo metadata failed: {how}\n{}", ran.stderr));
        }
        let metadata: Value = serde_json::from_str(&ran.stdout)
            .map_err(|error| format!("cargo metadata is not JSON: {error}"))?;
        let root = PathBuf::from(text(&metadata["workspace_root"]));
        let packages = packages(&metadata, &root);
        let files = files(&root)?;
        let workspace = Self { root, packages, files };
        // An empty choice of packages would silently mean another one to cargo.
        if workspace.libraries().next().is_none() {
            return Err("cargo metadata shows no library among the default members".into());
        }
        Ok(workspace)
    }

    /// The text of a tracked file; `None` if it is not text.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    /// The tracked Rust files, with their text.
    pub(crate) fn rust_files(&self) -> impl Iterator<Item = (&str, String)> {
        let paths = self.files.iter().filter(|path| path.ends_with(".rs"));
        paths.filter_map(|path| Some((path.as_str(), self.read(path)?)))
    }

    /// The arguments that choose every package, each with every feature but `loom`, which replaces the atomics. Lints, tests, doc
    /// tests, examples and the bench use this one choice: another one would compile the whole tree again.
    pub(crate) fn everything(&self) -> Vec<String> {
        let mut arguments = vec!["--workspace".to_owned()];
        arguments.extend(features(self.packages.iter(), |name| name != "loom" && name != "default"));
        arguments
    }

    /// The packages that are built when nothing else is asked for.
    pub(crate) fn default_members(&self) -> impl Iterator<Item = &Package> + Clone {
        self.packages.iter().filter(|package| package.is_default)
    }

    /// The default members that others can depend on.
    pub(crate) fn libraries(&self) -> impl Iterator<Item = &Package> + Clone {
        self.default_members().filter(|package| package.is_library())
    }
}

impl Package {
    pub(crate) fn is_library(&self) -> bool {
        self.targets.iter().any(|target| target.is("lib") || target.is("proc-macro"))
    }
}

impl Target {
    pub(crate) fn is(&self, kind: &str) -> bool {
        self.kinds.iter().any(|own| own == kind)
    }
}

/// `-p one -p two …`
pub(crate) fn select<'a>(packages: impl Iterator<Item = &'a Package>) -> Vec<String> {
    packages.flat_map(|package| ["-p".to_owned(), package.name.clone()]).collect()
}

/// `--features one/a,two/a …` with every feature of every package that `wanted` agrees to; nothing if there is none.
pub(crate) fn features<'a>(
    packages: impl Iterator<Item = &'a Package>,
    wanted: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut list = Vec::new();
    for package in packages {
        let own = package.features.iter().filter(|feature| wanted(feature));
        list.extend(own.map(|feature| format!("{}/{feature}", package.name)));
    }
    if list.is_empty() { Vec::new() } else { vec!["--features".to_owned(), list.join(",")] }
}

fn packages(metadata: &Value, root: &Path) -> Vec<Package> {
    let defaults = texts(&metadata["workspace_default_members"]);
    let mut packages: Vec<_> = list(&metadata["packages"])
        .iter()
        .map(|package| {
            let manifest = PathBuf::from(text(&package["manifest_path"]));
            Package {
                name: text(&package["name"]),
                manifest: slashed(manifest.strip_prefix(root).unwrap_or(&manifest)),
                rust_version: package["rust_version"].as_str().map(str::to_owned),
                is_default: defaults.contains(&text(&package["id"])),
                features: package["features"]
                    .as_object()
                    .map(|features| features.keys().cloned().collect())
                    .unwrap_or_default(),
                dependencies: list(&package["dependencies"]).iter().map(dependency).collect(),
                targets: list(&package["targets"]).iter().map(target).collect(),
            }
        })
        .collect();
    packages.sort_by(|one, other| one.name.cmp(&other.name));
    packages
}

fn dependency(value: &Value) -> Dependency {
    let kind = match value["kind"].as_str() {
        Some("dev") => DependencyKind::Dev,
        Some("build") => DependencyKind::Build,
        _ => DependencyKind::Normal,
    };
    Dependency { name: text(&value["name"]), kind }
}

fn target(value: &Value) -> Target {
    Target { name: text(&value["name"]), kinds: texts(&value["kind"]) }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    list(value).iter().map(text).collect()
}

/// Lists the files that git tracks and that exist. Without a usable git (a source archive, a checkout owned by someone else) all
/// files but build output and hidden directories of tools.
fn files(root: &Path) -> Result<Vec<String>, String> {
    let mut git = Command::new("git");
    let ran = command::run(git.args(["ls-files", "-z"]).current_dir(root), Show::Never);
    let mut files = Vec::new();
    if ran.succeeded() {
        files.extend(ran.stdout.split_terminator('\0').map(str::to_owned));
        files.retain(|path| root.join(path).is_file());
    } else {
        walk(root, root, &mut files).map_err(|error| format!("cannot list the files: {error}"))?;
    }
    files.sort();
    Ok(files)
}

fn walk(root: &Path, directory: &Path, files: &mut Vec<String>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() {
            if name != "target" && name != ".git" {
                walk(root, &path, files)?;
            }
        } else {
            files.push(slashed(path.strip_prefix(root).unwrap_or(&path)));
        }
    }
    Ok(())
}

fn slashed(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, features: &[&str]) -> Package {
        let features = features.iter().map(|&feature| feature.to_owned()).collect();
        Package { name: name.into(), features, ..Package::default() }
    }

    #[test]
    fn features_are_named_with_their_package() {
        let packages = [package("a", &["loom", "testing"]), package("b", &[]), package("c", &["testing"])];
        assert_eq!(
            features(packages.iter(), |name| name == "testing"),
            ["--features", "a/testing,c/testing"]
        );
        assert!(features(packages.iter(), |name| name == "absent").is_empty());
        assert_eq!(select(packages[1..].iter()), ["-p", "b", "-p", "c"]);
    }

    #[test]
    fn metadata_is_read() {
        let metadata = serde_json::json!({
            "workspace_default_members": ["id-of-a"],
            "packages": [{
                "name": "a", "id": "id-of-a", "manifest_path": "/r/a/Cargo.toml", "rust_version": "1.95",
                "features": {"testing": []},
                "dependencies": [{"name": "b", "kind": null}, {"name": "c", "kind": "dev"}],
                "targets": [{"name": "a", "kind": ["lib"]}],
            }],
        });
        let packages = packages(&metadata, Path::new("/r"));
        let a = &packages[0];
        assert!(a.is_default && a.is_library() && a.features == ["testing"]);
        assert_eq!(a.manifest, "a/Cargo.toml");
        let kinds: Vec<_> = a.dependencies.iter().map(|dependency| dependency.kind).collect();
        assert_eq!(kinds, [DependencyKind::Normal, DependencyKind::Dev]);
    }
}
