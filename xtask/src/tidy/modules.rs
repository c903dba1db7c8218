//! Arrows between the top-level modules of a crate form no cycle: one of two modules that need each other holds something that belongs
//! to a third. A name that `lib.rs` re-exports, also through an inline module as `raw`, counts as one of the module that it comes from.
//! Unit tests do not count.

use crate::lexer::{self, Kind};
use crate::step::{Verdict, counted};
use crate::workspace::Workspace;
use std::collections::{BTreeMap, BTreeSet};

/// The modules that each top-level module of a crate names.
type Arrows = BTreeMap<String, BTreeSet<String>>;

/// The bench is a program whose scenarios, servers and reports name each other; it is no part of the library.
const LEFT_OUT: &str = "convoke-bench";

/// Arrows that may close a circle: crate, from, to, and the reason.
const EXCEPTIONS: [(&str, &str, &[&str], &str); 1] = [(
    "convoke-sender",
    "sender",
    &["algorithm", "awaiting"],
    "the provided methods of a trait are written in it, and those of `Sender` return algorithms, as `Iterator`'s return adaptors",
)];

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
        let mut arrows = arrows(files);
        for (_, from, to, _) in EXCEPTIONS.iter().filter(|exception| exception.0 == name) {
            let needed = arrows.entry((*from).to_owned()).or_default();
            let stale = to.iter().filter(|to| !needed.remove(**to));
            findings
                .extend(stale.map(|to| format!("{name}: {from} does not need {to}: the exception is stale")));
        }
        if let Some(cycle) = cycle(&arrows) {
            findings.push(format!("{name}: modules need each other in a circle: {}", cycle.join(" -> ")));
        }
    }
    Verdict::from_findings(findings, counted(crates.len(), "crate"))
}

/// Collects the arrows of a crate from its files. `lib` and `main` are the doors, which name everything.
fn arrows(files: &[SourceFile]) -> Arrows {
    let modules: BTreeSet<&str> = files.iter().map(|file| file.module.as_str()).collect();
    let door = files.iter().find(|file| file.module == "lib" || file.module == "main");
    let re_exports = door.map(|door| re_exports(&door.source)).unwrap_or_default();
    let mut arrows = Arrows::new();
    for file in files.iter().filter(|file| file.module != "lib" && file.module != "main") {
        let code = lexer::keep(&file.source, &[Kind::Code]);
        let code = lexer::before_tests(&code);
        let named = root_paths(code, file.depth).into_iter();
        let named = named.map(|path| resolve(&path, &modules, &re_exports));
        let named = named.filter(|other| *other != file.module && modules.contains(other.as_str()));
        arrows.entry(file.module.clone()).or_default().extend(named);
    }
    arrows
}

/// The names that a door re-exports, with the first word of the path that each comes from. What it re-exports in an inline
/// module has the name of that module before it: `raw::Name`.
type ReExports = BTreeMap<String, String>;

fn re_exports(door: &str) -> ReExports {
    let code = lexer::keep(door, &[Kind::Code]);
    let code = lexer::before_tests(&code);
    let mut found = ReExports::new();
    let mut inside: Vec<Option<&str>> = Vec::new();
    let mut at = 0;
    while let Some(next) = code[at..].find(['{', '}', 'u']) {
        at += next;
        let (rest, before) = (&code[at..], &code[..at]);
        match rest.strip_prefix("use ") {
            Some(tree) if !before.ends_with(in_path) => {
                let tree = &tree[..tree.find(';').unwrap_or(tree.len())];
                for path in paths(tree) {
                    let from = path.iter().find(|word| !matches!(word.0, "crate" | "self" | "super"));
                    if let (Some((from, _)), Some((_, name))) = (from, path.last()) {
                        let around = inside.iter().flatten().map(|module| format!("{module}::"));
                        found.insert(around.collect::<String>() + name, (*from).to_owned());
                    }
                }
                at += tree.len();
            }
            _ if rest.starts_with('{') => inside.push(module_opened(before)),
            _ if rest.starts_with('}') => _ = inside.pop(),
            _ => {}
        }
        at += 1;
    }
    found
}

/// Returns the module that a path from the crate's root leads to: its first word, unless a door re-exports that word, or the first
/// two, from a module.
fn resolve(path: &Path<'_>, modules: &BTreeSet<&str>, re_exports: &ReExports) -> String {
    let words: Vec<&str> = path.iter().map(|(word, _)| *word).collect();
    let first = words.first().copied().unwrap_or_default();
    if modules.contains(first) {
        return first.to_owned();
    }
    let found = (1..=words.len()).find_map(|count| re_exports.get(&words[..count].join("::")));
    found.cloned().unwrap_or_else(|| first.to_owned())
}

/// Returns the paths from the crate's root in this code, without the root. The root is `crate::`, or as many `super::` as there are
/// modules around.
fn root_paths(code: &str, depth: usize) -> Vec<Path<'_>> {
    let mut named = Vec::new();
    let mut braces: Vec<bool> = Vec::new();
    let mut at = 0;
    while let Some(found) = code[at..].find(['{', '}', 'c', 's', 'm']) {
        at += found;
        let (rest, before) = (&code[at..], &code[..at]);
        let around = depth + braces.iter().filter(|is_module| **is_module).count();
        match rest.as_bytes()[0] {
            b'{' => braces.push(module_opened(before).is_some()),
            b'}' => _ = braces.pop(),
            _ if !before.ends_with(in_path) => {
                named.extend(behind_root(rest, around).into_iter().flat_map(paths));
            }
            _ => {}
        }
        at += 1;
    }
    named
}

/// The words of a path, each with the name that it has here: the last one may have another, by `as`.
type Path<'a> = Vec<(&'a str, &'a str)>;

/// Returns the paths of the tree that this code begins with: one, or those of the list at its end.
fn paths(code: &str) -> Vec<Path<'_>> {
    let mut found = Vec::new();
    tree(code, &[], &mut found);
    found
}

/// Collects the paths of a tree, each behind `outer`. Returns the code behind the tree.
fn tree<'a>(code: &'a str, outer: &[(&'a str, &'a str)], found: &mut Vec<Path<'a>>) -> &'a str {
    let mut rest = code.trim_start();
    let mut path = outer.to_vec();
    loop {
        if let Some(list) = rest.strip_prefix('{') {
            rest = list.trim_start();
            while !rest.is_empty() && !rest.starts_with('}') {
                let before = rest.len();
                rest = tree(rest, &path, found).trim_start();
                rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
                if rest.len() == before {
                    return rest;
                }
            }
            return rest.strip_prefix('}').unwrap_or(rest);
        }
        let end = rest.find(|letter| !is_in_word(letter)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if !word.is_empty() {
            path.push((word, word));
        }
        rest = after;
        match rest.trim_start().strip_prefix("::") {
            Some(inner) if !word.is_empty() => rest = inner.trim_start(),
            _ => break,
        }
    }
    if let Some(renamed) = rest.trim_start().strip_prefix("as ") {
        let renamed = renamed.trim_start();
        let end = renamed.find(|letter| !is_in_word(letter)).unwrap_or(renamed.len());
        if let Some(last) = path.last_mut() {
            last.1 = &renamed[..end];
        }
        rest = &renamed[end..];
    }
    // The module of a list itself: `{self, ...}`.
    if path.len() > outer.len() + 1 || path.last().is_some_and(|last| last.0 != "self") {
        found.push(path);
    } else {
        found.push(outer.to_vec());
    }
    rest
}

fn is_in_word(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

/// Returns true if a letter is part of a path, so that a word behind it does not begin one.
fn in_path(letter: char) -> bool {
    letter == ':' || is_in_word(letter)
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

/// Returns the name of the module whose brace is behind this code, if it is that of a module.
fn module_opened(before: &str) -> Option<&str> {
    let line = before.rsplit([';', '{', '}']).next().unwrap_or_default();
    let mut words = lexer::words(line).map(|(_, word)| word).collect::<Vec<_>>().into_iter().rev();
    let name = words.next()?;
    (words.next() == Some("mod")).then_some(name)
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

    #[test]
    fn a_name_of_the_door_is_one_of_its_module() {
        let files = crate_of(&[
            ("a.rs", "use crate::{B, std_only};"),
            ("b.rs", "fn f() { crate::raw::hidden() }"),
            ("c/mod.rs", "use super::renamed;"),
            (
                "lib.rs",
                "mod a; mod b; mod c;\npub use crate::b::{B, Other};\npub(crate) use a::{inner::{self, A as renamed}};\n\
                pub mod raw {\n    pub use crate::c::{deep::hidden, C};\n}",
            ),
        ]);
        assert_eq!(cycle(&arrows(&files)).unwrap(), ["a", "b", "c", "a"]);
    }

    #[test]
    fn a_tree_is_taken_apart_into_paths() {
        let names = |code| -> Vec<String> {
            let joined = |path: Path<'_>| path.iter().map(|word| word.0).collect::<Vec<_>>().join("::");
            paths(code).into_iter().map(joined).collect()
        };
        assert_eq!(names("a::b() + c"), ["a::b"]);
        assert_eq!(names("{a::{self, B as C, d::{e, f}}, G};"), ["a", "a::B", "a::d::e", "a::d::f", "G"]);
        assert_eq!(names("a::*;"), ["a"]);
    }
}
