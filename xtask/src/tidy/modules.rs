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

/// A file of a crate.
struct SourceFile {
    /// The top-level module that it belongs to.
    module: String,
    /// The number of modules that the file is in: the number of times that one writes `super::` in it for the crate's root.
    depth: usize,
    source: String,
}

impl SourceFile {
    /// Creates it from its path below `src`.
    fn new(path: &str, source: String) -> Self {
        let parts = path.split('/').filter(|part| !matches!(*part, "mod.rs" | "lib.rs" | "main.rs"));
        let module = path.split('/').next().unwrap_or(path).trim_end_matches(".rs").to_owned();
        Self { module, depth: parts.count(), source }
    }
}

pub(super) fn check(workspace: &Workspace) -> Verdict {
    let mut crates: BTreeMap<String, Vec<SourceFile>> = BTreeMap::new();
    for (path, source) in workspace.rust_files() {
        if let Some((name, rest)) = path.split_once("/src/")
            && name != LEFT_OUT
            && !rest.ends_with("/tests.rs")
        {
            crates.entry(name.to_owned()).or_default().push(SourceFile::new(rest, source));
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

/// Collects the arrows of a crate from its files. `lib` and `main` are the doors, which name everything.
fn arrows(files: &[SourceFile]) -> Arrows {
    let modules: BTreeSet<&str> = files.iter().map(|file| file.module.as_str()).collect();
    let mut arrows = Arrows::new();
    for file in files.iter().filter(|file| file.module != "lib" && file.module != "main") {
        let code = lexer::keep(&file.source, &[Kind::Code]);
        let code = lexer::before_tests(&code);
        let named = named_modules(code, file.depth).into_iter();
        let named = named.filter(|other| *other != file.module && modules.contains(other));
        arrows.entry(file.module.clone()).or_default().extend(named.map(str::to_owned));
    }
    arrows
}

/// Returns the first word behind each path to the crate's root, and the first words of each list behind one. The root is `crate::`, or
/// as many `super::` as there are modules around.
fn named_modules(code: &str, depth: usize) -> Vec<&str> {
    let mut named = Vec::new();
    let mut braces: Vec<bool> = Vec::new();
    let mut at = 0;
    while let Some(found) = code[at..].find(['{', '}', 'c', 's', 'm']) {
        at += found;
        let (rest, before) = (&code[at..], &code[..at]);
        let begins =
            !before.ends_with(|letter: char| letter == '_' || letter == ':' || letter.is_alphanumeric());
        let around = depth + braces.iter().filter(|is_module| **is_module).count();
        match rest.as_bytes()[0] {
            b'{' => braces.push(opens_module(before)),
            b'}' => _ = braces.pop(),
            _ if begins => {
                if let Some(path) = behind_root(rest, around) {
                    match path.strip_prefix('{') {
                        Some(list) => named.extend(lexer::first_words(list)),
                        None => named.extend(lexer::words(path).next().map(|(_, name)| name)),
                    }
                }
            }
            _ => {}
        }
        at += 1;
    }
    named
}

/// Returns the path behind `crate::`, or behind `around` times `super::`.
fn behind_root(path: &str, around: usize) -> Option<&str> {
    if let Some(rest) = path.strip_prefix("crate::") {
        return Some(rest);
    }
    let (mut rest, mut count) = (path, 0);
    while let Some(shorter) = rest.strip_prefix("super::") {
        (rest, count) = (shorter, count + 1);
    }
    (count > 0 && count >= around).then_some(rest)
}

/// Returns true if the brace behind this code is that of a module.
fn opens_module(before: &str) -> bool {
    let line = before.rsplit([';', '{', '}']).next().unwrap_or_default();
    let mut words = lexer::words(line).map(|(_, word)| word).collect::<Vec<_>>().into_iter().rev();
    words.next().is_some() && words.next() == Some("mod")
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

    fn crate_of(files: &[(&str, &str)]) -> Vec<SourceFile> {
        files.iter().map(|(path, source)| SourceFile::new(path, (*source).to_owned())).collect()
    }

    #[test]
    fn a_circle_is_named_in_its_order() {
        let files = crate_of(&[
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "use crate::{c::C, std_only};"),
            ("c.rs", "fn f() { crate::a::g() }"),
            ("lib.rs", "pub use crate::a;"),
        ]);
        assert_eq!(cycle(&arrows(&files)).unwrap(), ["a", "b", "c", "a"]);
    }

    #[test]
    fn arrows_that_only_go_down_are_fine() {
        let files = crate_of(&[("a.rs", "use crate::{b, c::C};"), ("b.rs", "use crate::c;"), ("c.rs", "")]);
        assert_eq!(cycle(&arrows(&files)), None);
    }

    #[test]
    fn unit_tests_may_look_up() {
        let files = crate_of(&[
            ("a.rs", "use crate::b;"),
            ("b.rs", "#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"),
        ]);
        assert_eq!(cycle(&arrows(&files)), None);
    }

    #[test]
    fn a_circle_by_the_way_of_super_is_found() {
        let files =
            crate_of(&[("a.rs", "use super::b::B;"), ("b/mod.rs", ""), ("b/c.rs", "use super::super::a;")]);
        assert_eq!(cycle(&arrows(&files)).unwrap(), ["a", "b", "a"]);
    }

    #[test]
    fn super_that_does_not_reach_the_root_is_no_arrow() {
        let files = crate_of(&[
            ("a.rs", "use crate::b;"),
            ("b/mod.rs", "mod a {}"),
            (
                "b/c.rs",
                "use super::a::A;\nmod inner {\n    use super::super::a;\n}\nfn f() { super::a::g() }",
            ),
        ]);
        assert_eq!(cycle(&arrows(&files)), None);
    }
}
