//! A function that projects its pinned `self` reads no field through `self`: `self.field` is a shared reference to the whole, also to a
//! future in it that has started, and invalidates what that future writes through. Only Miri sees it.

use crate::lexer::{self, Kind};
use crate::step::{Verdict, counted};
use crate::workspace::Workspace;

pub(super) fn check(workspace: &Workspace) -> Verdict {
    let (mut findings, mut functions) = (Vec::new(), 0);
    for (path, source) in workspace.rust_files() {
        if !path.contains("/src/") || path.starts_with("xtask/") {
            continue;
        }
        let code = lexer::keep(&source, &[Kind::Code]);
        for (line, function) in pinned_functions(lexer::before_tests(&code)) {
            functions += 1;
            findings.extend(fields_read(function).map(|field| {
                format!("{path}:{line}: reads `self.{field}`, and projects `self`: read the field of the projection")
            }));
        }
    }
    Verdict::from_findings(findings, format!("{} project a pinned `self`", counted(functions, "function")))
}

/// Returns the functions that take a pinned `self` and project it, with the lines on which they begin.
fn pinned_functions(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let starts = code.match_indices("fn ").map(|(at, _)| at);
    starts.filter_map(move |at| {
        let open = at + code[at..].find(['{', ';'])?;
        let head = &code[at..open];
        if !head.contains("self: Pin<&mut Self>") || code[open..].starts_with(';') {
            return None;
        }
        let body = &code[open..open + end_of_block(&code[open..])];
        body.contains(".project()").then(|| (code[..at].matches('\n').count() + 1, body))
    })
}

/// Returns the length of the block that the text begins with.
fn end_of_block(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 1 => return at,
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the fields that are read through `self`; a call of a method is none.
fn fields_read(body: &str) -> impl Iterator<Item = &str> {
    body.match_indices("self.").filter_map(|(at, found)| {
        let is_word = |letter: char| letter == '_' || letter.is_alphanumeric();
        let rest = &body[at + found.len()..];
        let (name, after) = rest.split_at(rest.find(|letter| !is_word(letter)).unwrap_or(rest.len()));
        let is_field = !name.is_empty() && !after.starts_with('(') && !after.starts_with("::<");
        (is_field && !body[..at].ends_with(is_word)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(code: &str) -> Vec<&str> {
        pinned_functions(code).flat_map(|(_, body)| fields_read(body)).collect()
    }

    #[test]
    fn a_field_that_is_read_beside_a_projection_is_found() {
        let code = "fn poll(mut self: Pin<&mut Self>, cx: &mut C) -> P {\n if !self.begun { return }\n let this = \
                    self.as_mut().project();\n}";
        assert_eq!(found(code), ["begun"]);
    }

    #[test]
    fn methods_and_functions_without_a_projection_are_fine() {
        let projects =
            "fn poll(self: Pin<&mut Self>) { if *self.as_mut().project().begun { self.listen(); } }";
        let unpinned =
            "fn poll(self: Pin<&mut Self>) { self.begun = true; }\nfn other(self: &Self) { self.begun }";
        assert!(found(projects).is_empty() && found(unpinned).is_empty());
    }
}
