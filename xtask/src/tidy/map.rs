//! The documents speak of files that are there, and the tables of ARCHITECTURE.md leave out no room: a map that is wrong is
//! worse than none.

use crate::step::{Verdict, counted};
use crate::workspace::Workspace;

const MAP: &str = "ARCHITECTURE.md";
/// Beginning of the table whose last column names modules of tests.
const TABLE_OF_TESTS: &str = "| trait | what an implementation does wrong |";
const DOCUMENTS: [&str; 3] = [MAP, "CONTRIBUTING.md", "README.md"];
/// Beginning of a table of files: the folder that they are in follows, in backticks.
const TABLE: &str = "| in `";
/// It is a map itself.
const LEFT_OUT: &str = "lib.rs";

pub(super) fn check(workspace: &Workspace) -> Verdict {
    let (mut findings, mut names) = (Vec::new(), 0);
    for document in DOCUMENTS {
        let Some(text) = workspace.read(document) else {
            findings.push(format!("{document} is missing"));
            continue;
        };
        for (line, name) in names_of_files(&text) {
            names += 1;
            if !workspace.files.iter().any(|path| is_of(path, name)) {
                findings.push(format!("{document}:{line}: there is no `{name}`"));
            }
        }
        for (line, module) in test_modules(&text) {
            names += 1;
            let is_of = |path: &String| {
                path.contains("/tests/")
                    && [format!("/{module}.rs"), format!("/{module}/mod.rs")]
                        .iter()
                        .any(|end| path.ends_with(end))
            };
            if !workspace.files.iter().any(is_of) {
                findings.push(format!("{document}:{line}: there is no module `{module}` of tests"));
            }
        }
        for (line, folder, named) in tables(&text) {
            for room in rooms(&workspace.files, folder) {
                if room != LEFT_OUT && !named.iter().any(|name| name.starts_with(room.as_str())) {
                    findings.push(format!("{document}:{line}: `{folder}/{room}` has no row"));
                }
            }
        }
    }
    Verdict::from_findings(findings, format!("{} of files and folders", counted(names, "name")))
}

/// Returns the words in backticks.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Returns the named files and folders (which end with `/`), with the number of their line.
fn names_of_files(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_path = |name: &&str| {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
        plain && [".rs", ".md", ".txt", "/"].iter().any(|end| name.len() > end.len() && name.ends_with(end))
    };
    let lines = text.lines().enumerate();
    lines.flat_map(move |(index, line)| quoted(line).filter(is_path).map(move |name| (index + 1, name)))
}

/// Returns true if the path is that of the named file, or in the named folder. The name may leave out outer folders.
fn is_of(path: &str, name: &str) -> bool {
    let path = format!("/{path}");
    let name = format!("/{name}");
    if name.ends_with('/') { path.contains(&name) } else { path.ends_with(&name) }
}

/// Returns the modules in the last column of the table of tests, with the number of their line.
fn test_modules(text: &str) -> Vec<(usize, &str)> {
    let lines = text.lines().enumerate().skip_while(|(_, line)| !line.starts_with(TABLE_OF_TESTS));
    let rows = lines.take_while(|(_, line)| line.starts_with('|'));
    rows.flat_map(|(index, line)| {
        let last = line.trim_end().trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        quoted(last).map(move |name| (index + 1, name))
    })
    .collect()
}

/// The tables of rooms: where, of which folder, and what their first columns name.
fn tables(text: &str) -> Vec<(usize, &str, Vec<&str>)> {
    let mut tables: Vec<(usize, &str, Vec<&str>)> = Vec::new();
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        if let Some((folder, _)) = line.strip_prefix(TABLE).and_then(|rest| rest.split_once('`')) {
            tables.push((index + 1, folder, Vec::new()));
            inside = true;
        } else if inside && let Some(row) = line.strip_prefix('|') {
            let first = row.split('|').next().unwrap_or_default();
            tables.last_mut().expect("inside of one").2.extend(quoted(first));
        } else {
            inside = false;
        }
    }
    tables
}

/// The files of a folder, and its folders, which end with `/`.
fn rooms(files: &[String], folder: &str) -> Vec<String> {
    let inside = files.iter().filter_map(|path| path.strip_prefix(folder)?.strip_prefix('/'));
    let mut rooms: Vec<_> = inside
        .map(|path| match path.split_once('/') {
            Some((room, _)) => format!("{room}/"),
            None => path.to_owned(),
        })
        .collect();
    rooms.dedup();
    rooms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders_are_told_from_other_words() {
        let text = "`a.rs` and `b/`,\n`cargo xtask`, `f(x)`, `c/d.md` `.rs` `1/2`";
        assert_eq!(names_of_files(text).collect::<Vec<_>>(), [(1, "a.rs"), (1, "b/"), (2, "c/d.md")]);
    }

    #[test]
    fn a_name_is_the_end_of_a_path_or_a_folder_on_it() {
        assert!(
            is_of("x/src/a.rs", "a.rs") && is_of("x/src/a.rs", "x/src/a.rs") && is_of("x/src/a.rs", "src/")
        );
        assert!(
            !is_of("x/src/aa.rs", "a.rs") && !is_of("x/src/a.rs", "rc/") && !is_of("x/src/a.rs", "a.rs/")
        );
    }

    #[test]
    fn a_table_names_rooms_in_its_first_column() {
        let text = "| in `x/src` | |\n| --- | --- |\n| `a.rs` `b/c.rs` | `d.rs` |\n\n| `e.rs` | |\n";
        assert_eq!(tables(text), [(1, "x/src", vec!["a.rs", "b/c.rs"])]);
        let files = ["x/src/a.rs", "x/src/b/c.rs", "x/src/b/f.rs", "y/src/a.rs"].map(String::from);
        assert_eq!(rooms(&files, "x/src"), ["a.rs", "b/"]);
    }

    #[test]
    fn the_last_column_of_the_table_of_tests_names_modules() {
        let text = format!(
            "{TABLE_OF_TESTS} so | tests |\n| --- | --- | --- |\n| `A` | `b` | `c`, `d` |\n| `A` | | |\n\n| `e` |\n"
        );
        assert_eq!(test_modules(&text), [(3, "c"), (3, "d")]);
    }
}
