//! Types decide, never names of types: `type_name` may appear in what people read, and nothing may depend on it. Nor does anything
//! depend on the order of an enum's variants: a variant that becomes a number has that number written at it.

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
        if is_ours {
            let found = numbers_of_variants(code).into_iter();
            findings.extend(found.map(|number| {
                format!(
                    "{path}: `{number}` depends on the order of variants: write their numbers, or use `match`"
                )
            }));
        }
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

/// Returns the casts of variants to numbers that are not written at the enum, which is in the same file; and those of `self`.
fn numbers_of_variants(code: &str) -> Vec<String> {
    let numbered = |name: &str| {
        let body = code.split(&format!("enum {name} {{")).nth(1).and_then(|rest| rest.split('}').next());
        body.is_some_and(|body| body.contains(" = "))
    };
    let casts = code.match_indices(" as ").filter_map(|(at, _)| {
        let number = lexer::words(&code[at + " as ".len()..]).next()?.1;
        if !["u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize"].contains(&number) {
            return None;
        }
        let is_part = |letter: char| letter == '_' || letter == ':' || letter.is_alphanumeric();
        let value = code[..at].rsplit(|letter| !is_part(letter)).next().unwrap_or_default();
        let is_variant = |word: &str| {
            word.starts_with(char::is_uppercase) && word.contains(|letter: char| letter.is_lowercase())
        };
        let is_unwritten = match value.rsplit_once("::") {
            Some((of, variant)) => {
                let name = of.rsplit("::").next().unwrap_or(of);
                is_variant(name) && is_variant(variant) && !numbered(name)
            }
            None => value == "self",
        };
        is_unwritten.then(|| format!("{value} as {number}"))
    });
    casts.collect()
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

    #[test]
    fn a_number_of_a_variant_must_be_written() {
        let code = "enum One { Xa, Ya }\nenum Two { Xa = 1 }\n\
            fn f() { One::Xa as u8; self as usize; Two::Xa as u8; One::MAX as u8; x as u8; One::Xa as Two }";
        assert_eq!(numbers_of_variants(code), ["One::Xa as u8", "self as usize"]);
    }
}
