//! Arrows between the top-level modules of a crate form no cycle: one of two modules that need each other holds something that belongs
//! to a third. Unit tests do not count.

use crate::lexer::{self, Kind};
use crate::step::{Verdict, counted};
use crate::workspace::Workspace;
use std::collections::{BTreeMap, BTreeSet};

/// The modules that each top-level module of a crate names.
type Arrows = BTreeMap<String, BTreeSet<String>>;

/// The bench is a program whose scenarios, servers and reports name each other; it is no part of the library.
const LEFT_OUT: &str = "convoke-bench";

pub(super) fn check(workspace: &Workspace) -> Verdict {
    let mut crates: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for (path, source) in workspace.rust_files() {
        if let Some((name, rest)) = path.split_once("/src/")
            && name != LEFT_OUT
            && !rest.ends_with("/tests.rs")
        {
            let module = rest.split('/').next().unwrap_or(rest).trim_end_matches(".rs").to_owned();
            crates.entry(name.to_owned()).or_default().push((module, source));
        }
    }
    let mut findings = Vec::new();
    for (name, files) in &crates {
        if let Some(cycle) = cycle(&arrows(files)) {
            findings.push(format!("{name}: modules need each other in a circle: {}", cycle.join(" -> ")));
        }
    }
    Verdict::from_findings(findings, counted(crates.len(), "crate"))
}

/// Collects the arrows of a crate from its files, each with the top-level module that it belongs to. `lib` and `main` are the doors,
/// which name everything.
fn arrows(files: &[(String, String)]) -> Arrows {
    let modules: BTreeSet<&str> = files.iter().map(|(module, _)| module.as_str()).collect();
    let mut arrows = Arrows::new();
    for (module, source) in files.iter().filter(|(module, _)| module != "lib" && module != "main") {
        let code = lexer::keep(source, &[Kind::Code]);
        let code = lexer::before_tests(&code);
        let named = named_modules(code).filter(|other| other != module && modules.contains(other.as_str()));
        arrows.entry(module.clone()).or_default().extend(named);
    }
    arrows
}

/// Returns the first word behind each `crate::`, and the first words of each list behind one.
fn named_modules(code: &str) -> impl Iterator<Item = String> {
    code.match_indices("crate::").flat_map(|(at, word)| {
        let rest = &code[at + word.len()..];
        let names = match rest.strip_prefix('{') {
            Some(list) => lexer::first_words(list),
            None => lexer::words(rest).next().map(|(_, name)| name).into_iter().collect(),
        };
        names.into_iter().map(str::to_owned)
    })
}

/// Returns a circle of arrows, if there is one: its modules in order, the first again at the end.
fn cycle(arrows: &Arrows) -> Option<Vec<String>> {
    let mut done = BTreeSet::new();
    arrows.keys().find_map(|module| visit(module, arrows, &mut Vec::new(), &mut done))
}

fn visit(
    module: &str,
    arrows: &Arrows,
    path: &mut Vec<String>,
    done: &mut BTreeSet<String>,
) -> Option<Vec<String>> {
    if let Some(begin) = path.iter().position(|other| other == module) {
        let mut cycle = path[begin..].to_vec();
        cycle.push(module.to_owned());
        return Some(cycle);
    }
    if done.contains(module) {
        return None;
    }
    path.push(module.to_owned());
    let found = arrows.get(module).into_iter().flatten().find_map(|other| visit(other, arrows, path, done));
    path.pop();
    done.insert(module.to_owned());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crate_of(files: &[(&str, &str)]) -> Vec<(String, String)> {
        files.iter().map(|(module, source)| ((*module).to_owned(), (*source).to_owned())).collect()
    }

    #[test]
    fn a_circle_is_named_in_its_order() {
        let files = crate_of(&[
            ("a", "use crate::b::B;"),
            ("b", "use crate::{c::C, std_only};"),
            ("c", "fn f() { crate::a::g() }"),
            ("lib", "pub use crate::a;"),
        ]);
        assert_eq!(cycle(&arrows(&files)).unwrap(), ["a", "b", "c", "a"]);
    }

    #[test]
    fn arrows_that_only_go_down_are_fine() {
        let files = crate_of(&[("a", "use crate::{b, c::C};"), ("b", "use crate::c;"), ("c", "")]);
        assert_eq!(cycle(&arrows(&files)), None);
    }

    #[test]
    fn unit_tests_may_look_up() {
        let files =
            crate_of(&[("a", "use crate::b;"), ("b", "#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n")]);
        assert_eq!(cycle(&arrows(&files)), None);
    }
}
