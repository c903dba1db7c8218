//! Arrows only go down: a room may depend on a room of a lower floor, never on one beside or above it.

use crate::step::{Verdict, counted};
use crate::workspace::{DependencyKind, Package, Workspace};

/// The floors, bottom to top. Rooms on one floor are blind to each other.
const FLOORS: &[&[&str]] = &[
    &["convoke-macros"],
    &["convoke-core"],
    &["convoke-exec", "convoke-sync"],
    &["convoke-task"],
    &["convoke-inspect"],
    &["convoke-sender"],
    &["convoke-io", "convoke-testing"],
    &["convoke-net"],
    &["convoke-uring", "convoke-poll", "convoke-sim"],
    &["convoke-tls"],
    &["convoke-http", "convoke-runtimes", "convoke-tokio"],
    &["convoke-postgres"],
    &["convoke"],
    &["convoke-bench", "convoke-models"],
];

/// Stands beside the house: it depends on no room, so that it still runs when none of them compiles.
const WORKSHOP: &str = "xtask";

pub(super) fn check(workspace: &Workspace) -> Verdict {
    let findings = workspace.packages.iter().flat_map(findings_of).collect();
    Verdict::from_findings(findings, counted(workspace.packages.len(), "crate"))
}

fn findings_of(package: &Package) -> Vec<String> {
    let name = &package.name;
    let own_floor = floor(name);
    if own_floor.is_none() && name != WORKSHOP {
        return vec![format!("{name} has no floor: give it one in xtask/src/tidy/layering.rs")];
    }
    let mut findings = Vec::new();
    for dependency in &package.dependencies {
        let other = &dependency.name;
        if other == WORKSHOP {
            findings.push(format!("{name} depends on {WORKSHOP}, which is no part of the library"));
        }
        let Some(other_floor) = floor(other) else { continue };
        match own_floor {
            None => findings.push(format!("{name} depends on {other}: the workshop depends on no room")),
            // Tests and examples speak through the facade, from whichever floor.
            Some(_) if dependency.kind == DependencyKind::Dev => {}
            Some(own) if other_floor < own => {}
            Some(own) if other_floor == own => findings.push(format!(
                "{name} depends on {other}: they share floor {own} and must not know each other"
            )),
            Some(own) => findings.push(format!(
                "{name} (floor {own}) depends on {other} (floor {other_floor}), which is above it"
            )),
        }
    }
    findings
}

fn floor(name: &str) -> Option<usize> {
    FLOORS.iter().position(|rooms| rooms.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;
    use DependencyKind::{Build, Dev, Normal};

    fn findings(name: &str, dependencies: &[(&str, DependencyKind)]) -> Vec<String> {
        let dependencies = dependencies.iter();
        findings_of(&Package {
            name: name.into(),
            dependencies: dependencies.map(|&(name, kind)| Dependency { name: name.into(), kind }).collect(),
            ..Package::default()
        })
    }

    #[test]
    fn down_is_allowed_over_any_number_of_floors() {
        assert!(
            findings("convoke-exec", &[("convoke-core", Normal), ("crossbeam-deque", Normal)]).is_empty()
        );
        assert!(findings("convoke", &[("convoke-core", Normal), ("convoke-uring", Build)]).is_empty());
        assert!(findings("convoke-bench", &[("convoke", Normal)]).is_empty());
    }

    #[test]
    fn up_is_refused() {
        assert_eq!(findings("convoke-core", &[("convoke-exec", Normal)]).len(), 1);
        assert_eq!(findings("convoke-core", &[("convoke", Build)]).len(), 1);
    }

    #[test]
    fn drivers_are_blind_to_each_other() {
        let found = findings("convoke-sim", &[("convoke-poll", Normal), ("convoke-io", Normal)]);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("must not know each other"));
    }

    #[test]
    fn tests_may_speak_through_the_facade() {
        assert!(findings("convoke-core", &[("convoke", Dev)]).is_empty());
    }

    #[test]
    fn the_workshop_stands_alone() {
        assert!(findings("xtask", &[("serde_json", Normal)]).is_empty());
        assert_eq!(findings("xtask", &[("convoke-core", Dev)]).len(), 1);
        assert_eq!(findings("convoke", &[("xtask", Dev)]).len(), 1);
    }

    #[test]
    fn a_new_crate_needs_a_floor() {
        assert!(findings("convoke-quic", &[])[0].contains("has no floor"));
    }
}
