//! Types decide, never names of types: `type_name` may appear in what people read, and nothing may depend on it.

use crate::lexer::{self, Kind};
use crate::step::{Verdict, counted};
use crate::workspace::Workspace;

/// The methods that look into a text.
const LOOKS_INTO: [&str; 8] =
    ["contains", "starts_with", "ends_with", "strip_prefix", "strip_suffix", "split", "find", "eq"];

pub(super) fn check(workspace: &Workspace) -> Verdict {
    let (mut findings, mut files) = (Vec::new(), 0);
    for (path, source) in workspace.rust_files() {
        let is_ours = path.contains("/src/") && !path.starts_with("xtask/") && !path.ends_with("/tests.rs");
        let code = lexer::keep(&source, &[Kind::Code]);
        let code = lexer::before_tests(&code);
        if is_ours && code.contains("type_name") {
            files += 1;
            let found = decisions(code).into_iter();
            findings.extend(found.map(|statement| {
                format!("{path}: `{statement}` depends on the name of a type: let a trait decide")
            }));
        }
    }
    Verdict::from_findings(findings, format!("{} show names to people", counted(files, "file")))
}

/// Returns the statements that look into the name of a type, or into a variable that holds one.
fn decisions(code: &str) -> Vec<String> {
    let statements = || code.split([';', '{', '}']);
    let mut names = vec!["type_name"];
    let named = statements().filter(|statement| statement.contains("type_name"));
    names.extend(named.filter_map(|statement| {
        let (variable, _) = statement.split_once("let ")?.1.split_once('=')?;
        let mut words = lexer::words(variable).map(|(_, word)| word).filter(|word| *word != "mut");
        // Tuples are skipped: this cannot tell which variable holds the name.
        words.next().filter(|_| !variable.contains('('))
    }));
    let looking = statements().filter(|statement| names.iter().any(|name| looks_into(statement, name)));
    looking.map(|statement| statement.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Returns true if a statement compares or searches the text of this name.
fn looks_into(statement: &str, name: &str) -> bool {
    statement.match_indices(name).any(|(at, _)| {
        let (before, after) = (&statement[..at], &statement[at + name.len()..]);
        let is_word = |letter: char| letter == '_' || letter.is_alphanumeric();
        if before.ends_with(is_word) || after.starts_with(is_word) {
            return false;
        }
        let before =
            before.trim_end_matches("any::").trim_end_matches("core::").trim_end_matches("std::").trim_end();
        let after = after_call(after);
        let called = LOOKS_INTO.iter().any(|method| after.starts_with(&format!(".{method}(")));
        let compared = ["==", "!="].iter().any(|sign| after.starts_with(sign) || before.ends_with(sign));
        called || compared || before.ends_with("match")
    })
}

/// Skips the type argument and the call behind a name: `::<T>()`.
fn after_call(rest: &str) -> &str {
    let rest = match rest.strip_prefix("::<") {
        Some(argument) => argument.find(">()").map_or(rest, |end| &argument[end + ">()".len()..]),
        None => rest,
    };
    rest.trim_start()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaviour_that_depends_on_a_name_is_found() {
        for code in [
            "if type_name::<O>().starts_with(PREFIX) { fail() }",
            "let failed = type_name::<O>() == NAME;",
            "match core::any::type_name::<T>() { _ => {} }",
            "let name = core::any::type_name::<T>(); if name.contains(PART) { fail() }",
            "if PREFIX == type_name::<Option<T>>() { fail() }",
        ] {
            assert_eq!(decisions(code).len(), 1, "{code}");
        }
    }

    #[test]
    fn a_name_that_is_shown_is_fine() {
        let code = "write!(f, \"{}\", type_name::<E>());\nlet name = type_name::<E>();\nlet a = b == c;\nshow(name, b == c);\n\
            let names = list.find(x);";
        assert!(decisions(code).is_empty());
    }
}
